"""Runs trials on Ray: warm worker groups, reports streamed up, one decision down."""
