/** The programs of the bench itself, which are processes of their own, so that their CPU time counts for no relay. */
import { join } from 'node:path'
import type { Command } from './child.ts'

export const ownProgram = (script: string, ...args: readonly (string | number)[]): Command => ({
  program: process.execPath,
  args: [join(import.meta.dirname, script), ...args.map(String)],
  cwd: '/',
})
