module github.com/hasp-dev/hasp

go 1.25.0
