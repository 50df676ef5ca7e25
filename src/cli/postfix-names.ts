/**
 * The commands that Postfix users know, under their names: as `deferd postqueue …`, and when the executable itself is
 * called by that name.
 */
import { postcat } from './commands/postcat.ts'
import { postqueue } from './commands/postqueue.ts'
import { postsuper } from './commands/postsuper.ts'
import { qshape } from './commands/qshape.ts'
import { mailq, sendmail } from './commands/sendmail.ts'
import type { Shell } from './shell.ts'

export type Tool = (shell: Shell, args: readonly string[]) => Promise<void>

export const POSTFIX_NAMES: ReadonlyMap<string, Tool> = new Map([
  ['sendmail', sendmail],
  ['mailq', mailq],
  ['postqueue', postqueue],
  ['postsuper', postsuper],
  ['postcat', postcat],
  ['qshape', qshape],
])
