/**
 * `deferd check`: is everything as it should be? Configuration, texts, certificates, the queue's folder and file, names.
 * Looks only; one line for each thing looked at.
 */
import { X509Certificate } from 'node:crypto'
import { resolveMx } from 'node:dns/promises'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import { DAY, type Instant } from '../../mail/clock.ts'
import { parseUsers } from '../../smtpd/users.ts'
import { configOf, subcommand } from '../command.ts'
import { EX, type Shell } from '../shell.ts'
import { templatesOf } from '../../daemon/notice-texts.ts'
import { harmless, jsonLine, plural, span } from '../text.ts'

interface Finding {
  readonly what: string
  readonly verdict: 'ok' | 'warning' | 'error'
  readonly text: string
}

type Check = (shell: Shell, loaded: LoadedConfig) => Promise<Finding | null> | Finding | null

const ok = (what: string, text: string): Finding => ({ what, verdict: 'ok', text })
const warning = (what: string, text: string): Finding => ({ what, verdict: 'warning', text })
const error = (what: string, text: string): Finding => ({ what, verdict: 'error', text })

/** A certificate that ends within this time is worth a word. */
const SOON = 21 * DAY

const configuration: Check = (_shell, { file, given }) =>
  ok('configuration', `${file ?? 'no file'}, ${plural(given.size, 'parameter')} given`)

const notices: Check = (_shell, loaded) => {
  const { warnings } = templatesOf(loaded)
  return warnings.length > 0
    ? warning('notices', warnings.join('; '))
    : ok('notices', loaded.config.bounce_template_file || 'built-in texts')
}

function certificate(what: string, path: string, now: Instant): Finding | null {
  if (path === '') return null
  const { validToDate, subject } = new X509Certificate(readFileSync(path))
  const left = validToDate.getTime() - now
  const text = `${path} (${subject.replaceAll('\n', ', ')})`
  if (left <= 0) return error(what, `${text} ended ${span(-left)} ago`)
  return left < SOON ? warning(what, `${text} ends in ${span(left)}`) : ok(what, `${text} holds for ${span(left)}`)
}

const certificates: readonly Check[] = [
  (shell, { config }) => certificate('certificate of the server', config.smtpd_tls_cert_file, shell.clock.now()),
  (shell, { config }) => certificate('certificate of the client', config.smtp_tls_cert_file, shell.clock.now()),
]

const secrets: Check = (_shell, { config }) => {
  const open = [config.smtpd_sasl_users_file, config.smtp_sasl_password_maps, config.smtpd_tls_key_file, config.smtp_tls_key_file].filter(
    (path) => path !== '' && existsSync(path) && (statSync(path).mode & 0o004) !== 0,
  )
  return open.length > 0
    ? error('secrets', `everybody may read ${[...new Set(open)].join(', ')}`)
    : ok('secrets', 'readable by their owners only')
}

const users: Check = (_shell, { config: { smtpd_sasl_users_file: path } }) =>
  path === '' ? null : ok('users', plural(parseUsers(readFileSync(path, 'utf8')).size, 'user'))

const folder: Check = (_shell, { config: { queue_directory: path } }) => {
  if (!existsSync(path)) return warning('queue folder', `there is no ${path} yet: deferd start makes it`)
  const { mode } = statSync(path)
  return (mode & 0o022) !== 0 ? error('queue folder', `others may write to ${path}`) : ok('queue folder', path)
}

const queue: Check = async (shell, { config }) => {
  if (!existsSync(config.queue_directory)) return null
  const reader = await shell.openReader(config)
  const mail = reader.counts(shell.clock.now())
  reader.close()
  const { default: Database } = await import('better-sqlite3')
  const { queueFile } = await import('../../queue/sqlite/database.ts')
  const db = new Database(queueFile(config.queue_directory), { readonly: true })
  const problems = db.prepare<[], string>('pragma quick_check(10)').pluck().all()
  const journal = String(db.pragma('journal_mode', { simple: true }))
  db.close()
  if (problems.join() !== 'ok') return error('queue', problems.join('; '))
  if (journal !== 'wal') return error('queue', `journal_mode is ${journal}, not wal`)
  const corrupt = mail.find((one) => one.queue === 'corrupt')?.messages ?? 0
  const total = mail.reduce((sum, one) => sum + one.messages, 0)
  return corrupt > 0
    ? warning('queue', `${plural(corrupt, 'message')} could not be read: deferd queue list --queue corrupt`)
    : ok('queue', plural(total, 'message'))
}

/** Mail to the world needs names; mail by way of relay hosts in brackets does not. */
const names: Check = async (_shell, { config }) => {
  if (config.relayhost.length > 0 && config.relayhost.every((host) => host.startsWith('['))) return null
  try {
    await resolveMx('gmail.com')
    return ok('names', 'mail exchangers can be looked up')
  } catch (cause) {
    return warning('names', `mail exchangers cannot be looked up: ${(cause as Error).message}`)
  }
}

const CHECKS: readonly (readonly [string, Check])[] = [
  ['configuration', configuration],
  ['notices', notices],
  ...certificates.map((check) => ['certificate', check] as const),
  ['secrets', secrets],
  ['users', users],
  ['queue folder', folder],
  ['queue', queue],
  ['names', names],
]

async function lookAt([what, check]: readonly [string, Check], shell: Shell, loaded: LoadedConfig): Promise<Finding | null> {
  try {
    return await check(shell, loaded)
  } catch (cause) {
    return error(what, (cause as Error).message)
  }
}

export function addCheck(program: Command, shell: Shell, end: (code: number) => void): void {
  subcommand(program, 'check', 'is everything as it should be?')
    .option('--json', 'one JSON object per thing looked at')
    .addHelpText('after', '\nEnds with 78 when something is wrong, 0 otherwise; warnings are not wrong.')
    .action(async (options: { readonly json?: true }, command: Command) => {
      const loaded = await configOf(shell, command)
      for (const entry of CHECKS) {
        const finding = await lookAt(entry, shell, loaded)
        if (finding === null) continue
        if (finding.verdict === 'error') end(EX.config)
        await shell.stdout.write(
          options.json === true ? jsonLine(finding) : `${finding.verdict.padEnd(8)}${finding.what.padEnd(27)}${harmless(finding.text)}\n`,
        )
      }
    })
}
