/** Width and colours of a command's output. */
import type { Display } from '../render/style.ts'
import type { Shell } from './shell.ts'

const PIPE_WIDTH = 80
/** On a narrower terminal, lines wrap. */
const LEAST_WIDTH = 40

/** Colours are used on a terminal only, unless NO_COLOR is set (no-color.org) or the terminal is `dumb`. */
export function displayOf({ stdout, env }: Pick<Shell, 'stdout' | 'env'>): Display {
  const { columns } = stdout
  const coloured = columns !== null && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  return { width: Math.max(LEAST_WIDTH, columns ?? PIPE_WIDTH), coloured }
}
