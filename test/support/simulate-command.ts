/** Runs `deferd simulate` in process; returns its output and exit code. */
import { Command, CommanderError } from 'commander'
import { withConfig } from '../../src/cli/shell/config-options.ts'
import { addSimulate } from '../../src/cli/commands/simulate/simulate.ts'
import { CommandError } from '../../src/cli/shell/exit.ts'
import type { Shell } from '../../src/cli/shell/shell.ts'
import { ConfigError } from '../../src/config/values/problem.ts'

export interface Run {
  readonly out: string
  readonly err: string
  /** Null on success. */
  readonly exitCode: number | null
}

/** `tick` is the time in ms by which each reading of the clock advances it, to simulate long runs. */
export async function simulate(
  args: readonly string[],
  { columns = null, tick = 0 }: { columns?: number | null; tick?: number } = {},
): Promise<Run> {
  const said = { out: '', err: '' }
  let ticks = 0
  const into = (where: 'out' | 'err') => ({ columns, write: async (data: string | Uint8Array) => void (said[where] += String(data)) })
  const shell = {
    // An empty file that always exists, so that no file of this machine is read.
    env: { DEFERD_CONFIG: '/dev/null', NO_COLOR: '1' },
    uid: 1000,
    user: 'ann',
    pid: 1,
    clock: { monotonic: () => (ticks += tick) },
    stdout: into('out'),
    stderr: into('err'),
  } as unknown as Shell
  const program = withConfig(new Command('deferd'))
    .exitOverride()
    .configureOutput({ writeErr: (text) => void (said.err += text) })
  addSimulate(program, shell)
  try {
    await program.parseAsync(['simulate', ...args], { from: 'user' })
    return { ...said, exitCode: null }
  } catch (error) {
    if (error instanceof CommandError || error instanceof ConfigError) return { ...said, err: error.message, exitCode: error.exitCode }
    if (error instanceof CommanderError) return { ...said, exitCode: error.exitCode }
    throw error
  }
}
