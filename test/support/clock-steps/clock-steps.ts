/**
 * Sets the wall clock of a daemon while it runs, with a small library that is compiled on this machine and interposed by
 * LD_PRELOAD (Linux; needs a C compiler).
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class SettableClock {
  /** Start a process with these variables. */
  readonly env: Readonly<Record<string, string>>
  readonly #control: string

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-clock-'))
    const library = join(folder, 'clock.so')
    const source = join(import.meta.dirname, 'interpose-clock.c')
    const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`interpose-clock.c does not compile: ${stderr}`)
    this.#control = join(folder, 'step')
    writeFileSync(this.#control, Buffer.alloc(8))
    this.env = { LD_PRELOAD: library, CLOCK_STEP_FILE: this.#control }
  }

  /** Sets the wall clock so many seconds ahead of the system's; behind it when negative. */
  set(seconds: number): void {
    const value = Buffer.alloc(8)
    value.writeBigInt64LE(BigInt(seconds))
    const fd = openSync(this.#control, 'r+')
    writeSync(fd, value, 0, value.length, 0)
    closeSync(fd)
  }
}
