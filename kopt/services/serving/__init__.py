"""What servers on this machine share: the port that they listen on, and the token that lets clients in."""
