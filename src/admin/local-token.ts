/**
 * The proof of a command on this machine: a secret in `queue_directory/local.token` (mode 0600), which only the owner of the queue and root
 * can read. A proxy that forwards to `admin.sock` can open the socket and does not have the secret.
 */
import { timingSafeEqual } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { errorMessage } from '../system/caught-error.ts'
import type { Random } from '../system/random.ts'
import { newLocalSecret } from './secrets.ts'

export class LocalToken {
  readonly #path: string
  readonly #secret: string
  readonly #warn: (text: string) => void

  constructor(path: string, random: Random, warn: (text: string) => void) {
    this.#path = path
    this.#secret = newLocalSecret(random)
    this.#warn = warn
  }

  matches(text: string): boolean {
    const [given, own] = [Buffer.from(text), Buffer.from(this.#secret)]
    return given.length === own.length && timingSafeEqual(given, own)
  }

  /** Writes the file unless it has the secret: a new one replaces that of a killed daemon, whatever its mode. Logs a failure. */
  async write(): Promise<void> {
    if ((await readFile(this.#path, 'utf8').catch(() => '')) === this.#secret) return
    const draft = `${this.#path}.new`
    try {
      await rm(draft, { force: true })
      await writeFile(draft, this.#secret, { mode: 0o600, flag: 'wx' })
      await rename(draft, this.#path)
    } catch (error) {
      this.#warn(`cannot write ${this.#path}, without which commands cannot use this daemon: ${errorMessage(error)}`)
    }
  }

  /** Removes the file. One that stays is useless: the next start has a new secret. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true }).catch(() => undefined)
  }
}
