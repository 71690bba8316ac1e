"""The app's side: what the SDK did and when. Nothing here parses text, blocks, or raises into the app."""
