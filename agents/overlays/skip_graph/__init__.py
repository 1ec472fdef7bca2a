"""The rings of a skip graph, kept by messages.

On level i, the keys of all peers whose membership vectors agree in the first i bits form a ring in
the order of the keys. The order and the levels are those of Aspnes and Shah, "Skip graphs", ACM
TALG 3(4), 2007. Links are made as in DDLL (Abe and Yoshida, "Constructing distributed doubly linked
lists without distributed locking", IEEE P2P 2015): the right pointer is the truth and the left one
a copy, so that one message to one peer decides.
"""
