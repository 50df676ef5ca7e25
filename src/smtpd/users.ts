/**
 * Who may log in: a file with one line a user, `name $scrypt$ln=15,r=8,p=1$salt$hash`, as `deferd user` writes it. It is
 * read at every login, so that a change holds at once.
 */
import { scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Random } from '../mail/random.ts'

/** 2^15 rounds of 8 kB: some 60 ms and 32 MB for each guess. */
const COST = { ln: 15, r: 8, p: 1 } as const
const KEY_LENGTH = 32
const SALT_LENGTH = 16
/** A file may ask for more work than we do, but not for all of our memory. */
const COST_LIMIT = 20

const HASH = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/
/** Names stand in a line of their own, in log lines and in trace headers. */
const NAME = /^[!-~]{1,256}$/

/** A user file that cannot be used; the message says where. */
export class UsersFileError extends Error {
  override readonly name = 'UsersFileError'
}

export const isUserName = (name: string): boolean => NAME.test(name) && !name.startsWith('#')

function derive(password: string, salt: Buffer, { ln, r, p }: { ln: number; r: number; p: number }, length: number): Promise<Buffer> {
  const options: ScryptOptions = { N: 2 ** ln, r, p, maxmem: 256 * 2 ** ln * r }
  return new Promise((resolve, reject) => {
    scrypt(password, salt, length, options, (error, key) => (error === null ? resolve(key) : reject(error)))
  })
}

/** What the file keeps of a password. */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const next = random.stream('password salt')
  const salt = Buffer.from(Array.from({ length: SALT_LENGTH }, () => Math.floor(next() * 256)))
  const key = await derive(password, salt, COST, KEY_LENGTH)
  return `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${salt.toString('base64')}$${key.toString('base64')}`
}

/** Is this the password that was hashed? */
export async function passwordMatches(password: string, hash: string): Promise<boolean> {
  const [, ln, r, p, salt = '', key = ''] = HASH.exec(hash) ?? []
  if (ln === undefined || Number(ln) > COST_LIMIT)
    throw new UsersFileError(`expected $scrypt$ln=…,r=…,p=…$salt$hash, got ${hash.slice(0, 20)}…`)
  const expected = Buffer.from(key, 'base64')
  const actual = await derive(password, Buffer.from(salt, 'base64'), { ln: Number(ln), r: Number(r), p: Number(p) }, expected.length)
  return timingSafeEqual(actual, expected)
}

/** Name → hash. Empty lines and lines that begin with `#` are skipped. */
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

export const formatUsers = (users: ReadonlyMap<string, string>): string => [...users].map(([name, hash]) => `${name} ${hash}\n`).join('')

/**
 * A well-formed hash that no password has. The guess of an unknown user is measured against it, so that the answer takes
 * as long as for a user that there is.
 */
const NOBODY = `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${Buffer.alloc(SALT_LENGTH).toString('base64')}$${Buffer.alloc(KEY_LENGTH).toString('base64')}`

export class Users {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  /** Rejects when the file cannot be read or understood. */
  async accepts(name: string, password: string): Promise<boolean> {
    const hash = parseUsers(await readFile(this.#path, 'utf8')).get(name)
    const matches = await passwordMatches(password, hash ?? NOBODY)
    return matches && hash !== undefined
  }
}
