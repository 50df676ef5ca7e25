import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configFrom, ConfigError, loadConfig, type ConfigSources, type LoadedConfig } from '../../src/config/load.ts'
import { asText } from '../../src/config/expansion.ts'
import { OPTIONS, type OptionName } from '../../src/config/options.ts'
import { DEFAULT_FILES, ignoredFileWarning } from '../../src/config/values/sources.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { days, hours, minutes, seconds } from '../../src/system/clock.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'deferd-config-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

const inFolder = (name: string): string => join(folder, name)

const load = (toml: string | null, more: Partial<ConfigSources> = {}): LoadedConfig => {
  const file = inFolder('given.toml')
  if (toml !== null) writeFileSync(file, toml)
  return loadConfig({
    ...(toml === null ? {} : { file }),
    env: {},
    overrides: [],
    uid: 1000,
    calledAs: 'deferd',
    hostname: 'host.example',
    defaultFiles: { folder: inFolder('deferd.toml'), system: inFolder('system.toml') },
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
  test('the defaults apply, and $name in them is expanded', () => {
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

describe('sources', () => {
  test('a variable of each parameter has its value, or is named _FILE and names a file with it', () => {
    const file = inFolder('secret')
    writeFileSync(file, 'postgresql://deferd:p%24w@db.example/deferd\r\n\n')
    const { config, variableFiles, whereOf } = load(null, {
      env: { DEFERD_QUEUE_DATABASE_FILE: file, DEFERD_LOG_FILE: '/var/log/deferd.log' },
    })
    expect(config.queue_database).toBe('postgresql://deferd:p%24w@db.example/deferd')
    expect([variableFiles, whereOf('queue_database'), config.log_file]).toEqual([[file], file, '/var/log/deferd.log'])
    for (const name of Object.keys(OPTIONS)) {
      writeFileSync(file, asText(OPTIONS[name as OptionName].default))
      const variable = `DEFERD_${name.toUpperCase()}`
      for (const env of [{ [variable]: asText(OPTIONS[name as OptionName].default) }, { [`${variable}_FILE`]: file }])
        expect([name, load(null, { env }).given.has(name)]).toEqual([name, true])
    }
  })

  test('a variable is not set twice, and its file can be read', () => {
    const env = {
      DEFERD_MAIL_NAME: '',
      DEFERD_MAIL_NAME_FILE: inFolder('none'),
      DEFERD_RELAYHOST_FILE: inFolder('none'),
      DEFERD_NONE_FILE: 'x',
    }
    expect(problems(null, { env })).toEqual([
      'environment: DEFERD_MAIL_NAME and DEFERD_MAIL_NAME_FILE are both set: unset one of them',
      expect.stringMatching(/^environment: DEFERD_RELAYHOST_FILE: cannot read .*none: ENOENT/),
      'environment: unknown parameter none_file; did you mean log_file?',
    ])
    writeFileSync(inFolder('host'), '::\n')
    expect(problems(null, { env: { DEFERD_RELAYHOST_FILE: inFolder('host') } })).toEqual([
      expect.stringMatching(/host: relayhost: "::" is not/),
    ])
  })

  test('command line over environment over file over default', () => {
    const toml = 'myhostname = "file"\nmail_name = "file"\nsyslog_name = "file"'
    const { config, given } = load(toml, { env: { DEFERD_MAIL_NAME: 'env', DEFERD_SYSLOG_NAME: 'env' }, overrides: ['syslog_name=option'] })
    expect([config.myhostname, config.mail_name, config.syslog_name, config.http_listen]).toEqual(['file', 'env', 'option', ''])
    expect([...given].toSorted()).toEqual(['mail_name', 'myhostname', 'syslog_name'])
  })

  test('lists on the command line are separated by commas or blanks; the last value of a name counts', () => {
    const { config } = load(null, { overrides: ['mynetworks=10.0.0.0/8, 192.0.2.1 [::1]/128', 'relayhost=[a]:25', ' relayhost = [b]:26 '] })
    expect(config.mynetworks).toEqual(['10.0.0.0/8', '192.0.2.1', '[::1]/128'])
    expect(config.relayhost).toEqual(['[b]:26'])
  })

  test('a file named by --config comes before $DEFERD_CONFIG', () => {
    const env = { DEFERD_CONFIG: inFolder('other.toml') }
    writeFileSync(env.DEFERD_CONFIG, 'mail_name = "other"')
    expect(load(null, { env }).config.mail_name).toBe('other')
    expect(load('mail_name = "given"', { env }).config.mail_name).toBe('given')
  })

  test('./deferd.toml is read, but not for root and not for commands with Postfix’s names', () => {
    const file = inFolder('deferd.toml')
    writeFileSync(file, 'mail_name = "folder"')
    try {
      expect(load(null)).toMatchObject({ file, ignoredFile: null, config: { mail_name: 'folder' } })
      expect(load(null, { uid: 0 })).toMatchObject({ file: null, ignoredFile: file, config: { mail_name: 'Deferd' } })
      expect(load('', { uid: 0 }).ignoredFile).toBeNull()
      expect(load(null, { calledAs: 'sendmail', uid: 0 })).toMatchObject({ ignoredFile: null, config: { mail_name: 'Deferd' } })
    } finally {
      rmSync(file)
    }
  })

  test('the file of the system is read when nothing else was found', () => {
    const [file, system] = [inFolder('deferd.toml'), inFolder('system.toml')]
    writeFileSync(file, 'mail_name = "folder"')
    writeFileSync(system, 'mail_name = "system"')
    try {
      expect(load(null).file).toBe(file)
      expect(load(null, { uid: 0 })).toMatchObject({ file: system, config: { mail_name: 'system' } })
      expect(load(null, { calledAs: 'mailq' }).file).toBe(system)
      expect(load('').file).toBe(inFolder('given.toml'))
    } finally {
      rmSync(file)
      rmSync(system)
    }
  })

  test('the sentence about a file that root ignores names what to do', () => {
    expect(ignoredFileWarning(DEFAULT_FILES.folder)).toBe(
      './deferd.toml is not read, because root reads no file of the current folder by itself: give --config ./deferd.toml, or set DEFERD_CONFIG',
    )
  })

  test('the default files are ./deferd.toml and /etc/deferd/deferd.toml', () => {
    expect(DEFAULT_FILES).toEqual({ folder: 'deferd.toml', system: '/etc/deferd/deferd.toml' })
  })

  test('variables of the test suite are not settings', () => {
    expect(load(null, { env: { DEFERD_TEST_REQUIRE: 'interop' } }).config.mail_name).toBe('Deferd')
    expect(problems(null, { env: { DEFERD_TESTS: '1' } })).toEqual(['environment: unknown parameter tests'])
  })

  test('a named file must exist', () => {
    expect(problems(null, { file: 'absent.toml' })).toEqual(['absent.toml: no such file'])
    expect(problems(null, { env: { DEFERD_CONFIG: 'absent.toml' } })).toEqual(['absent.toml: no such file'])
  })
})

describe('tables', () => {
  test('names lose default_ in a destination table', () => {
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
    const { settings: values, table } = new DestinationPolicies(config).for('gmail.com')
    expect(table).toBe('gmail.com')
    expect(values).toMatchObject({
      destination_concurrency_limit: 5,
      destination_recipient_limit: 50,
      minimal_backoff_time: minutes(1),
      maximal_backoff_time: hours(1),
    })
  })

  test('transport_maps of the command line replace those of the file', () => {
    const { config } = configFrom({ transport_maps: { 'a.example': 'discard:' } }, 'relay.example', {
      overrides: ['transport_maps=static:discard:'],
    })
    expect(config.transport_maps.size).toBe(0)
    expect(config.transport_tables).toEqual([{ kind: 'static', value: 'discard:' }])
  })

  test('cannot be given by environment or command line', () => {
    const said = problems(null, { env: { DEFERD_DKIM: 'x' }, overrides: ['destination=x'] })
    expect(said).toEqual([
      'environment: DEFERD_DKIM: tables are allowed in a file only',
      '-o: destination: tables are allowed in a file only',
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

  test('bounce_queue_lifetime defaults to maximal_queue_lifetime', () => {
    const { config } = load('maximal_queue_lifetime = "5d"\n[destination."a.example"]\nmaximal_queue_lifetime = "1h"')
    expect(config.bounce_queue_lifetime).toBe(days(5))
    expect(config.destination.get('a.example')?.bounce_queue_lifetime).toBe(hours(1))
  })

  test('a bounce_queue_lifetime above maximal_queue_lifetime is reduced to it, with a warning', () => {
    const { config, warnings, written } = load('bounce_queue_lifetime = "7d"\nmaximal_queue_lifetime = "5d"')
    expect(config.bounce_queue_lifetime).toBe(days(5))
    expect(written.get('bounce_queue_lifetime')).toBe('5d')
    expect(warnings).toEqual([
      expect.stringMatching(/given\.toml:1: bounce_queue_lifetime is above maximal_queue_lifetime, which is used instead$/),
    ])
  })
})

describe('a bad configuration', () => {
  test('is reported with all its problems at once, each with its place', () => {
    const said = problems(
      [
        '# a comment with "quotes',
        'mynetworks = [',
        '  "10.0.0.0/8", # [',
        ']',
        'retry_backoff = """exim(F,2h,15m;',
        'F,4d,6h)"""',
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
    expect(said).toEqual([
      'given.toml:7: unknown parameter minimal_backof_time; did you mean minimal_backoff_time?',
      'given.toml:8: message_size_limit: expected a size in bytes, got "big"',
      'given.toml:9: queue_minfree: expected a size in bytes, got true',
      'given.toml:11: transport_maps."example.com": expected "transport:nexthop"',
      'given.toml:13: destination."a.example": destination_concurrency_limit: expected a whole number of at least 0, got -1',
      'given.toml:14: unknown parameter default_destination_recipient_limit; did you mean destination_recipient_limit?',
      'given.toml:15: mail_name is a parameter of the whole relay, not of [destination."a.example"]; set it above the tables',
      '-o: expected name=value, got "nonsense"',
      'environment: unknown parameter http_listn; did you mean http_listen?',
      '-o: unknown parameter zzz',
      '-o: retry_jitter: expected a number of at least 0, got "lots"',
    ])
  })

  test.each([
    ['myhostname = "a"\nmyhostname = "b"', /^given\.toml:2: /],
    ['myhostname = unquoted', /^given\.toml:1: /],
    ['[destination]\n"a.example" = 5', /^given\.toml:2: expected a table: \[destination\."a\.example"\]$/],
    ['\ntransport_maps = "x"', /^given\.toml:2: transport_maps: "x" is not a lookup table; /],
    ['myorigin = "$myhost"', /^given\.toml:1: \$myhost: unknown parameter myhost$/],
    ['myorigin = "$smtp_helo_name"\nsmtp_helo_name = "$myorigin"', /myorigin → smtp_helo_name → myorigin is a circular reference$/],
    ['mail_name = 2026-11-20', /^given\.toml:1: mail_name: expected a text/],
  ])('%j is refused', (toml, expected) => {
    expect(problems(toml)[0]).toMatch(expected)
  })

  test('minimal_backoff_time above maximal_backoff_time is refused, in a destination table too', () => {
    expect(problems('minimal_backoff_time = "2h"')).toEqual(['given.toml:1: minimal_backoff_time is above maximal_backoff_time'])
    expect(problems('[destination."a.example"]\nmaximal_backoff_time = "10s"')).toEqual([
      'given.toml:2: destination."a.example": minimal_backoff_time is above maximal_backoff_time',
    ])
  })

  test('a text with a line break or another control character is refused, and not repeated', () => {
    const wrong = 'must not have control characters, such as line breaks'
    expect(problems('smtpd_banner = "x\\r\\n250 y"\nsyslog_name = "a\\u0000b"\nqueue_database = "postgresql://a:secret@b/c\\n"')).toEqual([
      `given.toml:1: smtpd_banner: ${wrong}`,
      `given.toml:2: syslog_name: ${wrong}`,
      `given.toml:3: queue_database: ${wrong}`,
    ])
    expect(load('retry_backoff = """exim(F,2h,15m;\nF,4d,6h)"""').config.retry_backoff).toContain('\n')
  })

  test('myhostname is ASCII, and the queue folder has a name', () => {
    expect(problems('myhostname = "bücher.example"\nqueue_directory = ""')).toEqual([
      'given.toml:1: myhostname: "bücher.example" is not ASCII; write "xn--bcher-kva.example"',
      'given.toml:2: queue_directory: is empty; write the path of a folder, such as "/var/lib/deferd"',
    ])
  })

  test('a problem that follows from another one is left out', () => {
    expect(problems('maximal_queue_lifetime = "soon"')).toEqual([
      'given.toml:1: maximal_queue_lifetime: expected a time such as "300s", "5m" or "2d", got "soon"',
    ])
    expect(problems('minimal_backoff_time = "5000s"\n[destination."a.example"]\ndestination_concurrency_limit = 2')).toEqual([
      'given.toml:1: minimal_backoff_time is above maximal_backoff_time',
    ])
    expect(problems('retry_jitter = inf')).toEqual(['given.toml:1: retry_jitter: expected a number of at least 0, got Infinity'])
  })

  test('values that their users cannot interpret are reported with their places', () => {
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

test('a number without a unit has the unit of Postfix: seconds, hours or days', () => {
  const { config, written } = configFrom(
    {
      maximal_queue_lifetime: 1,
      bounce_queue_lifetime: '1',
      delay_warning_time: '4, 30m',
      minimal_backoff_time: 60,
      smtp_connect_timeout: '7',
    },
    'relay.example',
  )
  expect(config).toMatchObject({
    maximal_queue_lifetime: 86_400_000,
    bounce_queue_lifetime: 86_400_000,
    delay_warning_time: [4 * 3_600_000, 1_800_000],
    minimal_backoff_time: 60_000,
    smtp_connect_timeout: 7_000,
  })
  expect(
    ['maximal_queue_lifetime', 'delay_warning_time', 'minimal_backoff_time'].map((name) => written.get(name as 'minimal_backoff_time')),
  ).toEqual(['1d', '4h, 30m', '60s'])
})

test('a time may have several units, and blanks before them', () => {
  const { config } = configFrom({ maximal_queue_lifetime: '1d 12h', minimal_backoff_time: '5 m', maximal_backoff_time: '1h30m' }, 'h')
  expect(config).toMatchObject({ maximal_queue_lifetime: hours(36), minimal_backoff_time: minutes(5), maximal_backoff_time: minutes(90) })
})

test('a malformed entry of smtp_tls_policy_maps is a problem of the configuration', () => {
  expect(() => configFrom({ smtp_tls_policy_maps: ['example.net enforce'] }, 'relay.example')).toThrow(
    /smtp_tls_policy_maps: "example\.net enforce" is not "NEXTHOP LEVEL/,
  )
})

test.each([
  ['myorigin', '/etc/mailname'],
  ['myorigin', 'a b.example'],
  ['myhostname', 'relay example com'],
  ['myhostname', 'relay..example'],
])('%s = %j is refused: it is not a domain name', (name, value) => {
  expect(() => configFrom({ [name]: value }, 'relay.example')).toThrow(new RegExp(`${name}: .* is not a domain name`))
})

test.each(['relay', 'relay.example.com', 'xn--bcher-kva.example', 'a_b.example'])('myhostname = %j is accepted', (value) => {
  expect(configFrom({ myhostname: value }, 'relay.example').config.myhostname).toBe(value)
})

test('mydomain is myhostname without its first part unless it is set', () => {
  expect(configFrom({ myhostname: 'mail.us.example', myorigin: '$mydomain' }).config).toMatchObject({
    mydomain: 'us.example',
    myorigin: 'us.example',
  })
  expect(configFrom({ myhostname: 'mail.us.example', mydomain: 'other.example' }).config.mydomain).toBe('other.example')
})
