/**
 * The user that the daemon runs as after a start by root (`deferd start --user NAME`). Configuration, keys and ports are read and
 * opened by root, everything in the queue folder by the user. User and groups belong to the whole process, with its threads.
 */
import { execFileSync } from 'node:child_process'
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

/** Runs id(1), which knows the users of all name services. */
function idsOf(option: '-u' | '-g' | '-G', name: string): readonly number[] {
  try {
    return execFileSync('id', [option, '--', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
      .trim()
      .split(' ')
      .map(Number)
  } catch (cause) {
    throw new AccountUnusable(EX_CONFIG, `--user ${name}: there is no such user (${errorMessage(cause).trim().split('\n').at(-1)})`, {
      cause,
    })
  }
}

export class Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly #groups: readonly number[]

  /** Throws AccountUnusable for an unknown user, for root, and unless root starts the daemon. */
  constructor(name: string) {
    this.name = name
    this.uid = idsOf('-u', name)[0] ?? 0
    this.gid = idsOf('-g', name)[0] ?? 0
    this.#groups = idsOf('-G', name)
    if (this.uid === 0) throw new AccountUnusable(EX_CONFIG, `--user ${name}: this user is root; name a user for deferd alone`)
    if (process.geteuid?.() !== 0) throw new AccountUnusable(EX_NOPERM, `--user ${name}: only root can change the user of the daemon`)
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

  /** Becomes the user for good. */
  assume(): void {
    process.seteuid?.(0)
    process.setgroups?.([...this.#groups])
    process.setgid?.(this.gid)
    process.setuid?.(this.uid)
  }
}
