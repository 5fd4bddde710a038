"""The paper's experiments as data, the engines that run them, and the report made of what they recorded."""
