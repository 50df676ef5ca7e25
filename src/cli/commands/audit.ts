/**
 * `deferd audit`: prints the audit log, oldest first.
 */
import type { Command } from 'commander'
import { configOf, subcommand } from '../shell/config-options.ts'
import type { Shell } from '../shell/shell.ts'
import type { AuditEntry } from '../../store/audit-log.ts'
import { auditJson } from '../../presentation/audit-json.ts'
import { isoTime, jsonLine, localTime, maskControls, plural } from '../../presentation/text.ts'

const PAGE = 500

interface Options {
  readonly tsv?: true
  readonly json?: true
}

/** A record as a line: JSON, tab-separated values, or text for people. */
function lineOf(record: AuditEntry, { tsv, json }: Options, { clock }: Shell): string {
  if (json === true) return jsonLine(auditJson(record))
  const { at, node, who, action, arguments: words, changed } = record
  if (tsv === true)
    return `${[isoTime(at), who, action, words, String(changed), ...(node === null ? [] : [node])].map(maskControls).join('\t')}\n`
  return `${localTime(at, clock)}  ${maskControls(who)}  ${maskControls(`${action} ${words}`)}  (${plural(changed, 'change')}${node === null ? '' : maskControls(`, at ${node}`)})\n`
}

async function print(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const reader = await shell.openReader(config)
  try {
    for (let after = 0; ;) {
      const page = await reader.audit({ after, limit: PAGE })
      await shell.stdout.write(page.map((record) => lineOf(record, options, shell)).join(''))
      if (page.length < PAGE) return
      after = page.at(-1)?.id ?? after
    }
  } finally {
    await reader.close()
  }
}

export function addAudit(program: Command, shell: Shell): void {
  subcommand(program, 'audit', 'print who changed the queue, when and how')
    .option('--tsv', 'exact tab-separated values, without headings')
    .option('--json', 'one JSON object per action')
    .addHelpText(
      'after',
      '\n--tsv has the columns time, user, action, arguments, changed messages; on a queue that several nodes share, the node too.',
    )
    .action((options: Options, command: Command) => print(shell, options, command))
}
