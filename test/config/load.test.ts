import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError, loadConfig, type ConfigSources, type LoadedConfig } from '../../src/config/load.ts'
import { settingsFor } from '../../src/config/destination-settings.ts'
import { days, hours, minutes, seconds } from '../../src/mail/clock.ts'

let folder: string
const home = process.cwd()

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'deferd-config-'))
  process.chdir(folder)
})
afterAll(() => {
  process.chdir(home)
  rmSync(folder, { recursive: true })
})

const load = (toml: string | null, more: Partial<ConfigSources> = {}): LoadedConfig => {
  const file = join(folder, 'given.toml')
  if (toml !== null) writeFileSync(file, toml)
  return loadConfig({
    ...(toml === null ? {} : { file }),
    env: {},
    overrides: [],
    uid: 1000,
    calledAs: 'deferd',
    hostname: 'host.example',
    ...more,
  })
}

/** The problems of a configuration that must be refused, without the path of the folder. */
function problems(toml: string | null, more: Partial<ConfigSources> = {}): readonly string[] {
  try {
    load(toml, more)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    expect(error.exitCode).toBe(78)
    return error.message.replaceAll(`${folder}/`, '').split('\n')
  }
  throw new Error('the configuration was accepted')
}

describe('without any file', () => {
  test('the defaults hold, and $name in them is expanded', () => {
    const { config, given, file, written } = load(null)
    expect(file).toBeNull()
    expect([...given]).toEqual([])
    expect(config).toMatchObject({
      myhostname: 'host.example',
      myorigin: 'host.example',
      smtpd_banner: 'host.example ESMTP Deferd',
      smtpd_listen: ['127.0.0.1:2525'],
      minimal_backoff_time: seconds(300),
      maximal_queue_lifetime: days(2),
      bounce_queue_lifetime: days(2),
      smtpd_peername_lookup: false,
    })
    expect(written.get('minimal_backoff_time')).toBe('300s')
    expect(config.transport_maps.size).toBe(0)
  })
})

describe('where the configuration comes from', () => {
  test('command line over environment over file over default', () => {
    const toml = 'myhostname = "file"\nmail_name = "file"\nsyslog_name = "file"'
    const { config, given } = load(toml, { env: { DEFERD_MAIL_NAME: 'env', DEFERD_SYSLOG_NAME: 'env' }, overrides: ['syslog_name=option'] })
    expect([config.myhostname, config.mail_name, config.syslog_name, config.http_listen]).toEqual(['file', 'env', 'option', ''])
    expect([...given].toSorted()).toEqual(['mail_name', 'myhostname', 'syslog_name'])
  })

  test('lists on the command line are separated by commas or blanks, the last word on a name counts', () => {
    const { config } = load(null, { overrides: ['mynetworks=10.0.0.0/8, 192.0.2.1 [::1]/128', 'relayhost=[a]:25', ' relayhost = [b]:26 '] })
    expect(config.mynetworks).toEqual(['10.0.0.0/8', '192.0.2.1', '[::1]/128'])
    expect(config.relayhost).toEqual(['[b]:26'])
  })

  test('a file named by --config comes before $DEFERD_CONFIG', () => {
    writeFileSync('other.toml', 'mail_name = "other"')
    expect(load(null, { env: { DEFERD_CONFIG: 'other.toml' } }).config.mail_name).toBe('other')
    expect(load('mail_name = "given"', { env: { DEFERD_CONFIG: 'other.toml' } }).config.mail_name).toBe('given')
  })

  test('./deferd.toml is read, but not for root and not for commands with Postfix’s names', () => {
    writeFileSync('deferd.toml', 'mail_name = "folder"')
    try {
      expect(load(null)).toMatchObject({ file: 'deferd.toml', config: { mail_name: 'folder' } })
      expect(load(null, { uid: 0 }).config.mail_name).toBe('Deferd')
      expect(load(null, { calledAs: 'sendmail' }).config.mail_name).toBe('Deferd')
    } finally {
      rmSync('deferd.toml')
    }
  })

  test('a file that was asked for must be there', () => {
    expect(problems(null, { file: 'absent.toml' })).toEqual(['absent.toml: there is no such file'])
    expect(problems(null, { env: { DEFERD_CONFIG: 'absent.toml' } })).toEqual(['absent.toml: there is no such file'])
  })
})

describe('tables', () => {
  test('a destination is set up with names that lose default_', () => {
    const { config } = load(`
      maximal_backoff_time = "1h"
      [transport_maps]
      "Example.com" = "smtp:[127.0.0.1]:2526"
      "*" = "smtp:[10.0.0.1]:25"
      [destination."GMail.com"]
      destination_concurrency_limit = 5
      minimal_backoff_time = 60
    `)
    expect([...config.transport_maps]).toEqual([
      ['example.com', 'smtp:[127.0.0.1]:2526'],
      ['*', 'smtp:[10.0.0.1]:25'],
    ])
    const { values, table } = settingsFor(config, 'gmail.com', 'gmail.com')
    expect(table).toBe('gmail.com')
    expect(values).toMatchObject({
      destination_concurrency_limit: 5,
      destination_recipient_limit: 50,
      minimal_backoff_time: minutes(1),
      maximal_backoff_time: hours(1),
    })
  })

  test('they cannot be given by environment or command line', () => {
    const said = problems(null, { env: { DEFERD_TRANSPORT_MAPS: 'x' }, overrides: ['destination=x'] })
    expect(said).toEqual([
      'environment: DEFERD_TRANSPORT_MAPS: tables can be given in a file only',
      '-o: destination: tables can be given in a file only',
    ])
  })
})

describe('values', () => {
  test.each([
    ['"300s"', seconds(300)],
    ['"1.5h"', minutes(90)],
    ['90', seconds(90)],
    ['"250ms"', 250],
  ])('minimal_backoff_time = %s', (written, expected) => {
    expect(load(`minimal_backoff_time = ${written}\nmaximal_backoff_time = "1d"`).config.minimal_backoff_time).toBe(expected)
  })

  test('refer to each other in any order, in lists too; $$ is a dollar sign', () => {
    const { config } = load(`
      smtpd_banner = "\${mail_name} at $(myhostname) costs $$5"
      relay_domains = ["$myorigin", "b.example"]
      myorigin = "corp.$myhostname"
      message_drop_headers = "$relay_domains 10.0.0.0/8"
    `)
    expect(config.smtpd_banner).toBe('Deferd at host.example costs $5')
    expect(config.relay_domains).toEqual(['corp.host.example', 'b.example'])
    expect(config.message_drop_headers).toEqual(['corp.host.example', 'b.example', '10.0.0.0/8'])
  })

  test('the lifetime of bounces follows that of other mail', () => {
    const { config } = load('maximal_queue_lifetime = "5d"\n[destination."a.example"]\nmaximal_queue_lifetime = "1h"')
    expect(config.bounce_queue_lifetime).toBe(days(5))
    expect(config.destination.get('a.example')?.bounce_queue_lifetime).toBe(hours(1))
  })

  test('check 26: a longer lifetime of bounces is cut to that of other mail, with a warning', () => {
    const { config, warnings, written } = load('bounce_queue_lifetime = "7d"\nmaximal_queue_lifetime = "5d"')
    expect(config.bounce_queue_lifetime).toBe(days(5))
    expect(written.get('bounce_queue_lifetime')).toBe('5d')
    expect(warnings).toEqual([
      expect.stringMatching(/given\.toml:1: bounce_queue_lifetime is above maximal_queue_lifetime, which is used instead$/),
    ])
  })
})

describe('a bad configuration', () => {
  test('shows all its problems at once, each with its place', () => {
    const said = problems(
      [
        '# a comment with "quotes',
        'mynetworks = [',
        '  "10.0.0.0/8", # [',
        ']',
        'smtpd_banner = """two',
        'minimal_backof_time = lines"""',
        'minimal_backof_time = "1s"',
        '"message_size_limit" = "big"',
        'queue_minfree = true',
        '[transport_maps]',
        '"example.com" = 25',
        "[destination.'a.example']",
        'destination_concurrency_limit = -1',
        'default_destination_recipient_limit = 4',
        'mail_name = "x"',
      ].join('\n'),
      { env: { DEFERD_HTTP_LISTN: ':1' }, overrides: ['nonsense', 'retry_jitter=lots', 'zzz=1'] },
    )
    expect(said.toSorted()).toEqual(
      [
        'given.toml:7: unknown parameter minimal_backof_time; did you mean minimal_backoff_time?',
        'given.toml:8: message_size_limit: expected a size in bytes, got "big"',
        'given.toml:9: queue_minfree: expected a size in bytes, got true',
        'given.toml:11: transport_maps."example.com": expected "transport:nexthop"',
        'given.toml:13: destination."a.example": destination_concurrency_limit: expected a whole number of at least 0, got -1',
        'given.toml:14: unknown parameter default_destination_recipient_limit; did you mean destination_recipient_limit?',
        'given.toml:15: mail_name holds for the whole relay and cannot stand in [destination."a.example"]',
        'environment: unknown parameter http_listn; did you mean http_listen?',
        '-o: expected name=value, got "nonsense"',
        '-o: retry_jitter: expected a number of at least 0, got "lots"',
        '-o: unknown parameter zzz',
      ].toSorted(),
    )
  })

  test.each([
    ['myhostname = "a"\nmyhostname = "b"', /^given\.toml:2: /],
    ['myhostname = unquoted', /^given\.toml:1: /],
    ['[destination]\n"a.example" = 5', /^given\.toml:2: expected a table: \[destination\."a\.example"\]$/],
    ['\ntransport_maps = "x"', /^given\.toml:2: transport_maps must be a table: \[transport_maps\]$/],
    ['myorigin = "$myhost"', /^given\.toml:1: \$myhost: unknown parameter myhost$/],
    ['myorigin = "$smtp_helo_name"\nsmtp_helo_name = "$myorigin"', /myorigin → smtp_helo_name → myorigin goes round in a circle$/],
    ['mail_name = 2026-11-20', /^given\.toml:1: mail_name: expected a text/],
  ])('%j is refused', (toml, expected) => {
    expect(problems(toml)[0]).toMatch(expected)
  })

  test('a first wait above the longest is refused, at one destination too', () => {
    expect(problems('minimal_backoff_time = "2h"')).toEqual(['given.toml:1: minimal_backoff_time is above maximal_backoff_time'])
    expect(problems('[destination."a.example"]\nmaximal_backoff_time = "10s"')).toEqual([
      'given.toml:2: destination."a.example": minimal_backoff_time is above maximal_backoff_time',
    ])
  })

  test('values that mean nothing to the parts that use them are told with their places', () => {
    const toml = [
      'mynetworks = ["10.0.0.0/8", "here"]',
      'relayhost = "::"',
      'http_listen = "2580x"',
      '[transport_maps]',
      '"A.example" = "pigeon:coop"',
      '"b.example" = "smtp:[127.0.0.1]:2526"',
    ].join('\n')
    const said = problems(toml, { overrides: ['smtpd_listen=127.0.0.1:2525, 127.0.0.1:99999'] })
    expect(said.map((line) => line.split(' ', 2).join(' ')).toSorted()).toEqual(
      [
        '-o: smtpd_listen:',
        'given.toml:1: mynetworks:',
        'given.toml:2: relayhost:',
        'given.toml:3: http_listen:',
        'given.toml:5: transport_maps:',
      ].toSorted(),
    )
  })
})
