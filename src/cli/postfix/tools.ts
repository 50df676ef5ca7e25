/**
 * Commands with Postfix's names, as `deferd postqueue …` or when the executable is called by that name. This file holds their
 * option summaries for `--help` and docs/commands.md, and loads a tool's module when the tool is called.
 */
import type { Shell } from '../shell/shell.ts'

export type Tool = (shell: Shell, args: readonly string[]) => Promise<void>

interface PostfixName {
  readonly load: () => Promise<Tool>
  /** Markdown. */
  readonly options: string
}

export const POSTFIX_NAMES: ReadonlyMap<string, PostfixName> = new Map<string, PostfixName>([
  [
    'sendmail',
    {
      load: async () => (await import('./sendmail.ts')).sendmail,
      options:
        '`-t`, `-i`, `-f`, `-F`, `-N`, `-R`, `-V`, `-B`, `-v` (wait up to 10 s for the queue id and print it), `-bp`, `-bs` (SMTP on standard input and output), `-bi` or `-I` (as `newaliases`), `-q`, `-qIID`, `-qRSITE`; other options are accepted and ignored where Postfix does. Arguments and fields are lists of addresses as for Postfix; when one address is malformed, nothing is sent and the exit code is 65. Exit code 0 means that the message is stored durably, in the maildrop, from which a running daemon takes it at once. `-X` (VERP) and `-bv` are refused with 64',
    },
  ],
  [
    'mailq',
    {
      load: async () => (await import('./sendmail.ts')).mailq,
      options: 'as `postqueue -p`',
    },
  ],
  [
    'newaliases',
    {
      load: async () => (await import('./sendmail.ts')).newaliases,
      options:
        'as `sendmail -bi`: reads the tables of `alias_maps` and reports a malformed one with exit code 78; the running daemon uses them from then on, with all other tables and files of its configuration',
    },
  ],
  [
    'postqueue',
    {
      load: async () => (await import('./postqueue.ts')).postqueue,
      options: '`-p` list, `-j` list as JSON, `-f` flush, `-i ID` flush one message, `-s SITE` flush mail to a domain',
    },
  ],
  [
    'postsuper',
    {
      load: async () => (await import('./postsuper.ts')).postsuper,
      options:
        '`-d` delete (to the trash), `-h` hold, `-H` release, `-r` requeue, `-e` expire, `-f` expire and release; an id, `-` for ids on standard input, or `ALL`; queue names restrict the scope',
    },
  ],
  [
    'postcat',
    {
      load: async () => (await import('./postcat.ts')).postcat,
      options: '`-q ID`, with `-e` envelope, `-h` header, `-b` body',
    },
  ],
  [
    'qshape',
    {
      load: async () => (await import('./qshape.ts')).qshape,
      options:
        '`-s` by sender, `-b N` columns, `-t N` minutes in the first column, `-l` columns of equal width, `-p` parent domains, `-m N`, `-w N`, `-n N`; queue names',
    },
  ],
])
