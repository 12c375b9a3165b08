"""How cost grows with the amount of data. Run with `./dev bench --scale [WORD ...]`."""
