module deferd.example/lab

go 1.19
