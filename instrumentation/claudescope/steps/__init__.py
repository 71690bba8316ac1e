"""What a step is: calls, blocks and chains, and how blocks are cut into steps."""
