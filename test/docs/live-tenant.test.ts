/** contrib/oauth/live-tenant.sh: its syntax, what it would run, and its wrong usage. test/docs/newcomers.test.ts runs it against a simulated tenant. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SCRIPT = join(import.meta.dirname, '../../contrib/oauth/live-tenant.sh')

const run = (...args: readonly string[]) =>
  spawnSync('sh', [...args], { encoding: 'utf8', env: { PATH: process.env['PATH'], DEFERD: '/nowhere' } })

test('its syntax is that of a POSIX shell', () => {
  expect(run('-n', SCRIPT)).toMatchObject({ status: 0, stderr: '' })
})

test('--dry-run prints the commands and runs none', () => {
  const { status, stdout } = run(SCRIPT, '--oauth', 'm365', '--from', 'a@contoso.example', '--to', 'b@example.org', '--notice', '--dry-run')
  expect(status).toBe(0)
  expect([...stdout.matchAll(/^ {4}\/nowhere (.*)$/gm)].map((match) => match[1])).toEqual([
    '--version',
    'oauth show m365',
    'oauth test m365 a@contoso.example',
    'check --connect',
    "sendmail -v -f 'a@contoso.example' b@example.org",
    "sendmail -v -f '<>' b@example.org",
    'oauth list',
  ])
})

test('a program that fails fails each step, with exit code 1', () => {
  const { status, stdout } = run(SCRIPT, '--oauth', 'm365', '--from', 'a@contoso.example', '--to', 'b@example.org')
  expect(status).toBe(1)
  expect(stdout).toMatch(/^# FAILED: version, table, token and login, check, first mail, tokens$/m)
})

test.each([
  [['--oauth'], '--oauth needs a value'],
  [['--oauth', 'm365', '--from', 'a@contoso.example'], '--oauth, --from and --to are needed'],
  [['--oauth', 'm365', '--from', 'a', '--to', 'b', '--wait', '2m'], '--wait 2m is no number of seconds'],
  [['--secret', 'x'], 'unknown argument --secret'],
])('wrong usage %s ends with 64', (args, message) => {
  const { status, stderr } = run(SCRIPT, ...args)
  expect(status).toBe(64)
  expect(stderr).toMatch(new RegExp(`^live-tenant\\.sh: ${message}\nusage: live-tenant\\.sh --oauth NAME`))
})
