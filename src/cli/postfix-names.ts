/**
 * The commands that Postfix users know, under their names: as `deferd postqueue …`, and when the executable itself is
 * called by that name. Each is loaded when it is called.
 */
import type { Shell } from './shell.ts'

export type Tool = (shell: Shell, args: readonly string[]) => Promise<void>

export const POSTFIX_NAMES: ReadonlyMap<string, () => Promise<Tool>> = new Map<string, () => Promise<Tool>>([
  ['sendmail', async () => (await import('./commands/sendmail.ts')).sendmail],
  ['mailq', async () => (await import('./commands/sendmail.ts')).mailq],
  ['postqueue', async () => (await import('./commands/postqueue.ts')).postqueue],
  ['postsuper', async () => (await import('./commands/postsuper.ts')).postsuper],
  ['postcat', async () => (await import('./commands/postcat.ts')).postcat],
  ['qshape', async () => (await import('./commands/qshape.ts')).qshape],
])
