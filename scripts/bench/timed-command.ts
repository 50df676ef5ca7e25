/**
 * CPU time and duration of a program that runs to its end.
 */
import { output } from './child.ts'

export interface Timed {
  /** User and system time of the program and of the children that it waited for, in seconds. */
  readonly cpu: number
  /** Duration in seconds. */
  readonly elapsed: number
}

/** Runs a program without its output. bash measures it, since Node does not tell the CPU time of a child. Throws when it fails. */
export async function timeCommand(program: string, args: readonly string[], signal?: AbortSignal): Promise<Timed> {
  const script = 'TIMEFORMAT="%U %S %R"; { time "$@" > /dev/null 2>&3; } 3>&2 2>&1'
  const text = await output('bash', ['-c', script, 'bash', program, ...args], '/', signal)
  const [user = Number.NaN, system = Number.NaN, elapsed = Number.NaN] = text.split(' ').map(Number)
  return { cpu: user + system, elapsed }
}
