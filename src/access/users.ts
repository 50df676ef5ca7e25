/**
 * SMTP AUTH users. The file has one line per user, `name $scrypt$ln=15,r=8,p=1$salt$hash`, as `deferd user` writes it. The file is
 * read at every login, so that changes take effect at once.
 */
import { scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { randomOctets, type Random } from '../system/random.ts'

/** Cost of one check: 2^15 blocks of 1 kB, about 60 ms and 32 MB. */
const COST = { ln: 15, r: 8, p: 1 } as const
const KEY_LENGTH = 32
const SALT_LENGTH = 16
/** Maximum `ln` accepted in a file: 1 GB of memory with r = 8. */
const COST_LIMIT = 20

const HASH = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/
/** Allowed form of a name, because names appear in the file, in log lines and in Received fields. */
const NAME = /^[!-~]{1,256}$/

/** An invalid entry of a user file; the message quotes the entry or names its line. */
class UsersFileError extends Error {
  override readonly name = 'UsersFileError'
}

export const isUserName = (name: string): boolean => NAME.test(name) && !name.startsWith('#')

function derive(password: string, salt: Buffer, { ln, r, p }: { ln: number; r: number; p: number }, length: number): Promise<Buffer> {
  const options: ScryptOptions = { N: 2 ** ln, r, p, maxmem: 256 * 2 ** ln * r }
  return new Promise((resolve, reject) => {
    scrypt(password, salt, length, options, (error, key) => (error === null ? resolve(key) : reject(error)))
  })
}

/** Returns the hash of a password, as an entry of the file has it. */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = randomOctets(random, 'password salt', SALT_LENGTH)
  const key = await derive(password, salt, COST, KEY_LENGTH)
  return `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${salt.toString('base64')}$${key.toString('base64')}`
}

/** True when the hash belongs to this password. Throws UsersFileError for a malformed hash. */
export async function passwordMatches(password: string, hash: string): Promise<boolean> {
  const [, ln, r, p, salt = '', key = ''] = HASH.exec(hash) ?? []
  if (ln === undefined || Number(ln) > COST_LIMIT)
    throw new UsersFileError(`expected $scrypt$ln=…,r=…,p=…$salt$hash, got ${hash.slice(0, 20)}…`)
  const expected = Buffer.from(key, 'base64')
  const actual = await derive(password, Buffer.from(salt, 'base64'), { ln: Number(ln), r: Number(r), p: Number(p) }, expected.length)
  return timingSafeEqual(actual, expected)
}

/** Parses the file into hashes by name. Skips empty lines and lines that begin with `#`. Throws UsersFileError for any other line. */
export function parseUsers(text: string): Map<string, string> {
  const users = new Map<string, string>()
  text.split('\n').forEach((line, index) => {
    const [name = '', hash = '', ...more] = line.trim().split(/\s+/)
    if (name === '' || name.startsWith('#')) return
    if (!isUserName(name) || !HASH.test(hash) || more.length > 0) {
      throw new UsersFileError(`line ${index + 1}: expected a name and a $scrypt$ hash`)
    }
    users.set(name, hash)
  })
  return users
}

/** A hash that matches no password. The password of an unknown user is compared with it, so that each login takes equally long. */
const NO_USER = `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${Buffer.alloc(SALT_LENGTH).toString('base64')}$${Buffer.alloc(KEY_LENGTH).toString('base64')}`

export class Users {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  /** True when the user exists and the password is correct. Rejects when the file cannot be read or parsed. */
  async accepts(name: string, password: string): Promise<boolean> {
    const hash = parseUsers(await readFile(this.#path, 'utf8')).get(name)
    const matches = await passwordMatches(password, hash ?? NO_USER)
    return matches && hash !== undefined
  }
}
