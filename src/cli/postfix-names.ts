/**
 * The commands that Postfix users know, under their names: as `deferd postqueue …`, and when the executable itself is
 * called by that name, with their options in a line for `--help` and the manual. Each is loaded when it is called.
 */
import type { Shell } from './shell.ts'

export type Tool = (shell: Shell, args: readonly string[]) => Promise<void>

export interface PostfixName {
  readonly load: () => Promise<Tool>
  /** Its options, in Markdown. */
  readonly options: string
}

export const POSTFIX_NAMES: ReadonlyMap<string, PostfixName> = new Map<string, PostfixName>([
  [
    'sendmail',
    {
      load: async () => (await import('./commands/sendmail.ts')).sendmail,
      options:
        '`-t`, `-i`, `-f`, `-F`, `-N`, `-R`, `-V`, `-B`, `-bp`, `-bs`, `-q`, `-qIID`, `-qRSITE`; others are taken and ignored where Postfix does. Mail is safe when it ends with 0, also while no daemon runs: it waits in the maildrop',
    },
  ],
  [
    'mailq',
    {
      load: async () => (await import('./commands/sendmail.ts')).mailq,
      options: 'as `postqueue -p`',
    },
  ],
  [
    'postqueue',
    {
      load: async () => (await import('./commands/postqueue.ts')).postqueue,
      options: '`-p` list, `-j` list as JSON, `-f` flush, `-i ID` flush one message, `-s SITE` flush mail to a domain',
    },
  ],
  [
    'postsuper',
    {
      load: async () => (await import('./commands/postsuper.ts')).postsuper,
      options:
        '`-d` delete (to the trash), `-h` hold, `-H` release, `-r` requeue, `-e` give up, `-f` give up and release; an id, `-` for ids on standard input, or `ALL`; queue names restrict the scope',
    },
  ],
  [
    'postcat',
    {
      load: async () => (await import('./commands/postcat.ts')).postcat,
      options: '`-q ID`, with `-e` envelope, `-h` header, `-b` body',
    },
  ],
  [
    'qshape',
    {
      load: async () => (await import('./commands/qshape.ts')).qshape,
      options:
        '`-s` by sender, `-b N` columns, `-t N` minutes in the first, `-l` equal columns, `-p` parent domains, `-m N`, `-w N`, `-n N`; queue names',
    },
  ],
])
