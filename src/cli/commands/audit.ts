/**
 * `deferd audit`: who changed the queue, when and how.
 */
import type { Command } from 'commander'
import { configOf, subcommand } from '../command.ts'
import type { Shell } from '../shell.ts'
import { epochSeconds, harmless, jsonLine, localTime, plural } from '../text.ts'

const PAGE = 500

export function addAudit(program: Command, shell: Shell): void {
  subcommand(program, 'audit', 'who changed the queue, when and how')
    .option('--json', 'one JSON object per action')
    .action(async (options: { readonly json?: true }, command: Command) => {
      const { config } = await configOf(shell, command)
      const reader = await shell.openReader(config)
      try {
        for (let after = 0; ;) {
          const page = reader.audit({ after, limit: PAGE })
          const lines = page.map(({ at, who, action, arguments: words, changed }) =>
            options.json === true
              ? jsonLine({ time: epochSeconds(at), who, action, arguments: words, changed })
              : `${localTime(at, shell.clock)}  ${harmless(who)}  ${harmless(`${action} ${words}`)}  (${plural(changed, 'change')})\n`,
          )
          await shell.stdout.write(lines.join(''))
          if (page.length < PAGE) return
          after = page.at(-1)?.id ?? after
        }
      } finally {
        reader.close()
      }
    })
}
