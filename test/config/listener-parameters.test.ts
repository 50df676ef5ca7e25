/** A parameter that a `[[smtpd]]` table may have (◆ in docs/configuration.md) is read from the settings of the listener, not of the relay. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { OPTIONS } from '../../src/config/options.ts'

const NAMES = Object.entries(OPTIONS).flatMap(([name, option]) => ('perListener' in option ? [name] : []))

/** Parts that are given the settings of a listener by `src/smtpd/server.ts`, and the configuration itself. */
const OF_LISTENERS = /^src\/(?:smtpd|access|config|import)\//

/** Uses for mail that comes through no listener, and reads at the start that go over all listeners. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'src/api/submission-routes.ts': ['message_size_limit', 'smtpd_recipient_limit'],
  'src/api/submitted/submitted-mail.ts': ['smtpd_recipient_limit'],
  'src/cli/check/check.ts': ['smtpd_tls_cert_file'],
  'src/cli/commands/map.ts': ['smtpd_sender_login_maps'],
  'src/cli/postfix/sendmail-bs.ts': [
    'message_size_limit',
    'smtpd_banner',
    'smtpd_error_sleep_time',
    'smtpd_forbid_bare_newline_exclusions',
    'smtpd_forbid_unauth_pipelining',
    'smtpd_recipient_limit',
  ],
  'src/cli/postfix/sendmail.ts': ['message_size_limit'],
  'src/daemon/delivery-secrets.ts': ['smtpd_tls_chain_files', 'smtpd_tls_key_file'],
  'src/daemon/preparation.ts': ['smtpd_recipient_restrictions', 'smtpd_sasl_auth_enable', 'smtpd_tls_cert_file'],
  // Defaults of the one listener of a world.
  'src/lab/examples/lab-examples.ts': ['smtpd_error_sleep_time', 'smtpd_timeout'],
  'src/lab/lab-world.ts': ['smtpd_error_sleep_time', 'smtpd_timeout'],
  // The limit of a message whose listener names none.
  'src/queue/intake/acceptor.ts': ['message_size_limit'],
  // Free space for mail of any listener.
  'src/queue/intake/intake.ts': ['message_size_limit'],
  'src/relay/queue-parts.ts': ['message_size_limit'],
  'src/relay/relay.ts': ['message_size_limit'],
  'src/simulator/scenario/scenario-file.ts': ['message_size_limit'],
  // Settings of the one listener of a world.
  'src/testkit/options/world-server.ts': ['smtpd_sasl_auth_enable', 'smtpd_tls_security_level'],
}

const ANY = new RegExp(`\\b(?:${NAMES.join('|')})\\b`, 'g')

/** The parameters in the code of a file, without its comments. */
const namesIn = (file: string): readonly string[] => {
  const code = readFileSync(file, 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, '')
  return [...new Set(code.match(ANY))].toSorted()
}

test('no other part reads it', () => {
  const uses = globSync('src/**/*.ts').flatMap((file) => {
    const used = OF_LISTENERS.test(file) ? [] : namesIn(file)
    return used.length === 0 ? [] : [[file, used] as const]
  })
  expect(Object.fromEntries(uses)).toEqual(OTHERS)
})

test('the server gives its parts the settings of the listener, and reads the configuration of the relay for nothing else', () => {
  const server = readFileSync('src/smtpd/server.ts', 'utf8')
  expect(server).toContain('contextOf({ ...relay, ...settings }')
  expect(server.match(new RegExp(`\\brelay\\.(?:${NAMES.join('|')})\\b`, 'g'))).toBeNull()
})

test('each is used for a listener, or at its start', () => {
  const used = new Set([...globSync('src/{smtpd,access}/**/*.ts'), 'src/config/smtpd-listeners.ts'].flatMap(namesIn))
  expect(NAMES.filter((name) => !used.has(name))).toEqual([])
})
