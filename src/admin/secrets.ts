/** Secrets of tokens, sessions and login codes: random texts, of which only hashes are kept. */
import { createHash } from 'node:crypto'
import { LOCAL_PREFIX } from '../http/command-protocol.ts'
import { crc32 } from '../system/crc32.ts'
import type { Random } from '../system/random.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Digits and small letters without those that look alike (i, l, o, u), since people type codes. */
const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz'

const PREFIX = 'dfd_'
/** Random characters of a token: 256 bits. */
const TOKEN_LENGTH = 43
const CHECKSUM_LENGTH = 6
/** Random characters of a session id (256 bits), and of a code (130 bits). */
const SESSION_LENGTH = 43
const CODE_LENGTH = 26

function randomText(random: Random, alphabet: string, length: number): string {
  const next = random.stream('admin secret')
  return Array.from({ length }, () => alphabet[Math.floor(next() * alphabet.length)]).join('')
}

/** Checksum of a token: CRC-32 in six digits to the base 62. Scanners of secrets recognize tokens by it. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = `${BASE62[rest % BASE62.length]}${digits}`
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

/** A new token: `dfd_`, 43 random characters and a checksum. */
export function newToken(random: Random): string {
  const secret = randomText(random, BASE62, TOKEN_LENGTH)
  return `${PREFIX}${secret}${checksum(secret)}`
}

/** True for a text of the form of a token, with the right checksum. Other texts need no look-up. */
export function isToken(text: string): boolean {
  const [, secret = '', sum] = /^dfd_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(text) ?? []
  return sum !== undefined && checksum(secret) === sum
}

/** A local token. It has no checksum, because it is compared, never looked up. */
export const newLocalSecret = (random: Random): string => `${LOCAL_PREFIX}${randomText(random, BASE62, TOKEN_LENGTH)}`

export const newSessionId = (random: Random): string => randomText(random, BASE62, SESSION_LENGTH)

export const newCode = (random: Random): string => randomText(random, BASE32, CODE_LENGTH)

/** Normalizes a code that a person has typed: case, blanks and hyphens do not count. */
export const typedCode = (text: string): string => text.toLowerCase().replaceAll(/[\s-]/g, '')

/** SHA-256 of a secret, in hexadecimal digits. The secrets are random, so that no slow hash is needed. */
export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')
