"""What an operator runs in front of its service: voucher checks, serving, settlement."""
