/**
 * The user of the daemon, for a process of root: after `deferd start --user NAME`, and in commands that see what the daemon will see. Root
 * reads the configuration and opens the ports; keys, tables and everything in the queue folder are read as the user, as a reload reads
 * them. User and groups belong to the whole process, with its threads.
 */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { errorMessage } from '../system/caught-error.ts'

const EX_NOPERM = 77
const EX_CONFIG = 78

/** The process cannot run as the user. */
export class AccountUnusable extends Error {
  override readonly name = 'AccountUnusable'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** Runs id(1), which knows the users of all name services. Throws its error for an unknown user. */
const id = (option: '-u' | '-g' | '-G' | '-un', user: string): string =>
  execFileSync('id', [option, '--', user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const isRoot = (): boolean => process.geteuid?.() === 0

export class Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly #groups: readonly number[]

  private constructor(name: string, ids: { readonly uid: number; readonly gid: number }, groups: readonly number[]) {
    this.name = name
    this.uid = ids.uid
    this.gid = ids.gid
    this.#groups = groups
  }

  /** Throws AccountUnusable for an unknown user, for root, and unless root calls. */
  static named(name: string): Account {
    const account = Account.#lookedUp(name)
    if (account.uid === 0) throw new AccountUnusable(EX_CONFIG, `--user ${name}: this user is root; name a user for deferd alone`)
    if (!isRoot()) throw new AccountUnusable(EX_NOPERM, `--user ${name}: only root can change the user of the daemon`)
    return account
  }

  static #lookedUp(name: string): Account {
    try {
      const ids = { uid: Number(id('-u', name)), gid: Number(id('-g', name)) }
      return new Account(name, ids, id('-G', name).split(' ').map(Number))
    } catch (cause) {
      const why = errorMessage(cause).trim().split('\n').at(-1)
      throw new AccountUnusable(EX_CONFIG, `--user ${name}: there is no such user (${why})`, { cause })
    }
  }

  /**
   * The user that `name` names; without a name the owner of the queue folder, as whom the daemon runs. Null when the process itself
   * acts: it is no process of root, root owns the folder, or there is none.
   */
  static ofDaemon(queueDirectory: string, name: string | undefined): Account | null {
    if (name !== undefined) return Account.named(name)
    const folder = isRoot() ? statSync(queueDirectory, { throwIfNoEntry: false }) : undefined
    if (folder === undefined || folder.uid === 0) return null
    try {
      return Account.#lookedUp(id('-un', String(folder.uid)))
    } catch {
      // A user id without a name occurs in containers.
      return new Account(`uid-${folder.uid}`, folder, [folder.gid])
    }
  }

  /** Acts as the user, until `regain` or `assume`. */
  act(): void {
    process.setgroups?.([...this.#groups])
    process.setegid?.(this.gid)
    process.seteuid?.(this.uid)
  }

  /** Acts as root again. */
  regain(): void {
    process.seteuid?.(0)
  }

  /** Calls `work` as the user, then acts as root again. */
  acting<T>(work: () => T): T {
    this.act()
    try {
      return work()
    } finally {
      this.regain()
    }
  }

  /** Becomes the user for good. */
  assume(): void {
    process.seteuid?.(0)
    process.setgroups?.([...this.#groups])
    process.setgid?.(this.gid)
    process.setuid?.(this.uid)
  }
}
