"""The command line: one small module a command, each with ``add_arguments(parser)`` and ``execute(arguments)``.

Nothing here may import ``anthropic`` or ``grpc`` before a command needs it: a test looks.
"""
