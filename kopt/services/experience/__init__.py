"""The experience log: opened, filtered, added to, and used as evidence in answers, diagnoses and citations."""
