/**
 * `deferd bounce preview`: a notice as a sender would get it, with the texts and names that are configured.
 */
import { Argument, type Command } from 'commander'
import { noticeSettings } from '../../bounce/notice-writer.ts'
import { previewNotice } from '../../bounce/preview.ts'
import type { Debt } from '../../queue/message.ts'
import { configOf, subcommand } from '../command.ts'
import type { Shell } from '../shell.ts'
import { templatesOf } from '../../daemon/notice-texts.ts'
import { writeContent } from './queue-cat.ts'

export function addBounce(program: Command, shell: Shell): void {
  const parent = program.command('bounce').description('the notices that MAILER-DAEMON sends')
  subcommand(parent, 'preview', 'print a notice as a sender would get it')
    .addArgument(new Argument('[kind]', 'which notice').choices(['failure', 'delay', 'success']).default('failure'))
    .action(async (kind: Debt, _options: unknown, command: Command) => {
      const loaded = await configOf(shell, command)
      const { templates, warnings } = templatesOf(loaded)
      for (const warning of warnings) await shell.stderr.write(`deferd: warning: ${warning}\n`)
      await writeContent(shell.stdout, [previewNotice(kind, noticeSettings(loaded.config, templates), shell.clock)])
    })
}
