/** `deferd bounce preview`: prints a notice as its recipient would receive it, with the configured texts and names. */
import { clockOf } from '../../system/queue-clock.ts'
import { Argument, type Command } from 'commander'
import { noticeSettings } from '../../bounce/notice-writer.ts'
import { previewNotice } from '../../bounce/notice-preview.ts'
import type { NoticeDue } from '../../mail/message.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import type { Shell } from '../shell/shell.ts'
import { templatesOf } from '../../daemon/notice-templates.ts'
import { writeContent } from './queue/queue-cat.ts'

export function addBounce(program: Command, shell: Shell): void {
  const parent = program.command('bounce').description('the notices that MAILER-DAEMON sends')
  subcommand(parent, 'preview', 'print a notice as the sender of a message would get it')
    .addArgument(new Argument('[kind]', 'which notice').choices(['failure', 'delay', 'success']).default('failure'))
    .action(async (kind: NoticeDue, _options: unknown, command: Command) => {
      const loaded = await configOf(shell, command)
      const { templates, warnings } = templatesOf(loaded)
      for (const warning of warnings) await shell.stderr.write(`deferd: warning: ${warning}\n`)
      const options = { clock: clockOf(null, shell.clock), lifetime: loaded.config.maximal_queue_lifetime }
      await writeContent(shell.stdout, [previewNotice(kind, noticeSettings(loaded.config, templates), options)])
    })
}
