/** Keys of tests, in files of their own. They are public, so they protect nothing. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const RSA_KEY = `-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDvZ1DUwumiO/GP
uaLwjKkG+DEYMn+5J+MlabTcZaFsd2nrioSY8VvafgzTaFi34G9FMy7JgtLaN3Qx
tW3ZC/vRRH7YNwXUfzKu7+LrZTdOgNBSGSs0MmpjTmKmXd25jldx7At1kyjNh965
vZOTz3HkbHT3w2cjilQHUFKUGikWhB9LU92ioGymL5E/lTY8FrRBCcJ3O5/rg7NW
dGax2cYnxQXtA+n6Ux+xlXKUx0VeZpS++S5LCl0sDul69YlYUXZkiwBORQ8/TFpc
HtmUzu2ibBtWqF9n35LVsvuDCkpj1JIWKGqYDqX6AA5I5Md9daFFDSyagjmiYnDn
yPOGeG51AgMBAAECggEAATDcYBKQIvR1YSelPdkVRimZ5OrrY7plENyTv7zprqZx
anCH9FLPCCk0WyDbwB5nr0pv4yS5c8hu1Yh3gWrj18ilcOHlL4dqcyBSWqVoPwW5
A4+IfXv6t3++UeGJptCkcraf3/fZbhxM6VOeFlAj2uUHN+xK6QxZGqg1oPL4XVpM
buSQRLBm0wOnKp64o+p5aqi7fVjxQkP8Pe62tjhY9+ATtRKVnty1Gp6A1I5HAn1H
4ryDaABJvbY75Ayf9sBbo03k/zxsk24fjpwRSnSBlGC2VMlV0QQAfiAGrhey1+XD
2FMey53BluuLH0ewUlclITsVnB44jbHoZa/gNWFXQQKBgQD8/oiKeMsp8k1wAls1
0TkM3zZOkDx4NIK6ai7eoMda0BUX3RVPeFnyTOu9rUUCpQ9MBnFMX+U+6ct+VF09
ilsaPBeFyj525T04WbJh/TOSJTIq2dPMQRuXS3FRJEv7xD+c4gKB51tN/nSGiBIr
rDKpkNd9VxVGqzJ3I8Vn2TimrQKBgQDyP3J2TW38fIoJd2zXFS5GsDyQHA5icn43
z0BQXTJ3u2G65t5ajLWrkPJiZ2ydNsHJfhtnAvF+EAZ6okN51yIHnQoD1iYnYu7y
UT7/0eBvNlKC8VAsyj7fK52yITHLA56VVF8jyveASS7VolhrG38QiaL2kIP64mhx
ciF32AIH6QKBgQCqcuqXMI7gcekOP+gnuBBRxckW4UJ8UhSJd6SgRX5KhsrPSxpi
cllXT8+7+RL3lzFZLTYEGM+gtW9ua3RuU9rRMA9BCmNPQ18dqgDu1+J44iqMiDmT
8YGfSyrLWkL/Gtco4XSDBNaVE4x6Xw6u8dMoPveP8K3a8NiNQEJtlwH9+QKBgH1P
XrldklByZ8E/2rhjx31feuSc7r/0M+BQwBcSLqIK9yIEfO7gLLWkFA3dLC0i/xlo
t2oQ9rTcO03ClB75ryu7C0wywafMIIiOiIUynuNIeWQsyelxcRZmbHuRej1nEOh0
LYbJXkApGyX9hblaDt+SIw9icDMeXSKaBEAHJ/3JAoGAYK8IKqFzkts4DqDMHEEr
SlJH8XrQucDbWcXKosfNYLQY9D16hqOjEW1ezuVbaU3AxRJkVGNsLyNmyaEUKdg4
94eciWw8yB/WCwr3dt037MUvXXdCmIsjM/ZFSc/Ste3rqrQXw+hP3HmXwyBCnvcx
ChgYDeqJDEU/JaG8WoRbp5k=
-----END PRIVATE KEY-----
`

const ED25519_KEY = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIBJPVl17H0FIRFQAUWpSS97IT4xD8AztJHn9nFzwQSkB
-----END PRIVATE KEY-----
`

/** Writes a file that only its owner may read. */
export function writePrivate(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

const folder = mkdtempSync(join(tmpdir(), 'deferd-dkim-'))

/** Paths of key files. */
export const KEY_FILES = {
  rsa: writePrivate(join(folder, 'rsa.pem'), RSA_KEY),
  ed25519: writePrivate(join(folder, 'ed25519.pem'), ED25519_KEY),
}

/** Keys of a DKIM table, with both algorithms. */
export const BOTH_KEYS = [`e1:${KEY_FILES.ed25519}`, `r1:${KEY_FILES.rsa}`]
