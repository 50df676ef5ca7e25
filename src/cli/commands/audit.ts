/**
 * `deferd audit`: prints the audit log, oldest first.
 */
import type { Command } from 'commander'
import { configOf, subcommand } from '../shell/config-options.ts'
import type { Shell } from '../shell/shell.ts'
import { epochSeconds, maskControls, jsonLine, localTime, plural } from '../render/text.ts'

const PAGE = 500

export function addAudit(program: Command, shell: Shell): void {
  subcommand(program, 'audit', 'print who changed the queue, when and how')
    .option('--json', 'one JSON object per action')
    .action(async (options: { readonly json?: true }, command: Command) => {
      const { config } = await configOf(shell, command)
      const reader = await shell.openReader(config)
      try {
        for (let after = 0; ;) {
          const page = await reader.audit({ after, limit: PAGE })
          const lines = page.map(({ at, who, action, arguments: words, changed }) =>
            options.json === true
              ? jsonLine({ time: epochSeconds(at), who, action, arguments: words, changed })
              : `${localTime(at, shell.clock)}  ${maskControls(who)}  ${maskControls(`${action} ${words}`)}  (${plural(changed, 'change')})\n`,
          )
          await shell.stdout.write(lines.join(''))
          if (page.length < PAGE) return
          after = page.at(-1)?.id ?? after
        }
      } finally {
        await reader.close()
      }
    })
}
