/** The SMTP server: commands, limits and replies, as in Postfix smtpd(8). */
import { expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'

const RECEIVED = 'Received: from x by y; Thu, 01 Jan 2026 00:00:00 +0000\r\n'

test('an untrusted client may not relay, a trusted client may', async () => {
  const { connect, of } = await openSmtpd()
  const outsider = await connect(OUTSIDER)
  expect(await outsider.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')).toBe(
    '454 4.7.1 <ann@far.example>: Relay access denied',
  )
  expect(of('refused')).toMatchObject([
    { stage: 'RCPT', sender: 'a@b.example', recipient: 'ann@far.example', protocol: 'ESMTP', helo: 'x', reply: { code: 454 } },
  ])
  const trusted = await connect()
  expect(await trusted.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')).toBe('250 2.1.5 Ok')
})

test.each([
  [48, /^250 2\.0\.0 Ok: queued as /],
  [49, /^554 5\.4\.0 Error: too many hops$/],
])('%i Received fields (hopcount_limit)', async (count, answer) => {
  const { connect, intake } = await openSmtpd()
  const client = await connect()
  await client.upToData()
  expect((await client.send(`${RECEIVED.repeat(count)}\r\nx\r\n.\r\n`)).trimEnd()).toMatch(answer)
  expect(intake.taken).toHaveLength(count === 48 ? 1 : 0)
})

test('a message above message_size_limit is refused at MAIL, or after the end of data without SIZE', async () => {
  const { connect, intake } = await openSmtpd()
  const client = await connect()
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example> SIZE=10240001')).toBe('552 5.3.4 Message size exceeds fixed limit')
  expect(await client.say('MAIL FROM:<a@b.example> SIZE=10240000', 'RCPT TO:<ann@far.example>', 'DATA')).toMatch(/^354 /)
  const line = `${'x'.repeat(78)}\r\n`
  expect(await client.send(line.repeat(128_000), 'x\r\n', '.\r\n')).toBe('552 5.3.4 Error: message file too big\r\n')
  expect(intake.taken).toEqual([])
  expect(intake.staged.size).toBe(0)
  expect(intake.unstaged).toHaveLength(1)
  await client.upToData()
  expect(await client.send(`\r\n${line.repeat(127_999)}`, '.\r\n')).toMatch(/^250 2\.0\.0 Ok: queued as /)
})

test('the 1001st recipient is refused, the first 1000 are accepted', async () => {
  const { connect, intake } = await openSmtpd()
  const client = await connect()
  await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
  const recipients = Array.from({ length: 1001 }, (_, i) => `RCPT TO:<r${i}@far.example>\r\n`)
  const replies = (await client.send(recipients.join(''))).trimEnd().split('\r\n')
  expect(replies.slice(0, 1000).every((reply) => reply === '250 2.1.5 Ok')).toBe(true)
  expect(replies[1000]).toBe('452 4.5.3 Error: too many recipients')
  await client.say('DATA', '', 'x', '.')
  expect(intake.taken[0]?.recipients).toHaveLength(1000)
})

test('without queue_minfree MAIL is refused', async () => {
  const { connect, intake } = await openSmtpd()
  intake.refusing = { code: 452, status: '4.3.1', text: 'Insufficient system storage' }
  const client = await connect()
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example>')).toBe('452 4.3.1 Insufficient system storage')
  expect(await client.say('RCPT TO:<ann@far.example>')).toMatch(/^503 5\.5\.1 /)
})

test.each(['\n.\n', '\n.\r\n'])('a body with %j does not end there', async (mark) => {
  const { connect, intake } = await openSmtpd({ relay_domains: ['far.example'] })
  const client = await connect(OUTSIDER)
  await client.upToData()
  const smuggled = 'MAIL FROM:<evil@x.example>\r\nRCPT TO:<b@far.example>\r\nDATA\r\nboo\r\n.\r\n'
  expect(await client.send(`\r\nhello${mark}${smuggled}`)).toMatch(/^250 2\.0\.0 Ok: queued as \w+\r\n$/)
  expect(intake.taken).toHaveLength(1)
  expect(intake.taken[0]?.text).toContain('hello\r\nMAIL FROM:<evil@x.example>\r\n')
})

test('a client that sends before the greeting is refused', async () => {
  const { connect, of } = await openSmtpd()
  const client = await connect('127.0.0.1', 'EHLO x\r\n')
  expect(client.heard).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
  expect(client.closed).toBe(true)
  expect(of('client-failure')).toMatchObject([{ failure: { what: 'pipelining', after: 'CONNECT' } }])
})

test('the 51st connection of an untrusted client is refused, that of a trusted client is not', async () => {
  const { connect } = await openSmtpd()
  const crowd = []
  for (let i = 0; i < 50; i++) crowd.push(await connect(OUTSIDER))
  expect(crowd.every((client) => client.heard.startsWith('220 '))).toBe(true)
  expect((await connect(OUTSIDER)).heard).toBe(`421 4.7.0 relay.example Error: too many connections from ${OUTSIDER}\r\n`)
  expect((await connect('203.0.113.10')).heard).toMatch(/^220 /)
  for (let i = 0; i < 51; i++) expect((await connect()).heard).toMatch(/^220 /)
  await crowd[0]?.say('QUIT')
  expect((await connect(OUTSIDER)).heard).toMatch(/^220 /)
})

test('after 10 errors replies are delayed by a second, the 20th error disconnects', async () => {
  const { connect, wait } = await openSmtpd()
  const client = await connect()
  await client.say('EHLO x')
  for (let i = 0; i < 10; i++) expect(await client.say('FOO')).toBe('500 5.5.2 Error: command not recognized')
  for (let i = 10; i < 19; i++) {
    expect(await client.say('FOO')).toBe('')
    await wait(SECOND - 1)
    expect(client.heard.match(/^500/gm)).toHaveLength(i)
    await wait(1)
    expect(client.heard.match(/^500/gm)).toHaveLength(i + 1)
  }
  await client.say('FOO')
  await wait(SECOND)
  expect(client.heard).toMatch(/500 5\.5\.2 [^\r]*\r\n421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
  expect(client.closed).toBe(true)
})

test('an accepted message resets the error count', async () => {
  const { connect } = await openSmtpd()
  const client = await connect()
  for (let round = 0; round < 4; round++) {
    await client.say('EHLO x')
    for (let i = 0; i < 9; i++) expect(await client.say('FOO')).toMatch(/^500 /)
    await client.upToData()
    expect(await client.say('', 'x', '.')).toMatch(/^250 2\.0\.0 Ok: queued/)
  }
})

test('Received names the recipient when there is only one', async () => {
  const { connect, intake } = await openSmtpd()
  const client = await connect()
  await client.upToData(['ann@far.example'])
  await client.say('', 'x', '.')
  await client.upToData(['ann@far.example', 'bob@far.example'])
  await client.say('', 'x', '.')
  const [one, two] = intake.taken
  expect(
    one?.text.startsWith(
      `Received: from client.example (unknown [127.0.0.1])\r\n\tby relay.example (Deferd) with ESMTP id 4dhRlh0000z1\r\n` +
        `\tfor <ann@far.example>; Thu, 01 Jan 2026 00:00:00 +0000 (UTC)\r\n`,
    ),
  ).toBe(true)
  expect(two?.text).toMatch(/ with ESMTP id \w+;\r\n\tThu, 01 Jan 2026 00:00:00 \+0000 \(UTC\)\r\n/)
  expect(two?.text).not.toContain('for <')
})

test('header fields are added for local clients only; Bcc is removed for all', async () => {
  const { connect, intake } = await openSmtpd({ relay_domains: ['far.example'] })
  for (const from of ['127.0.0.1', OUTSIDER]) {
    const client = await connect(from)
    await client.upToData()
    await client.say('Subject: x', 'Bcc: eve@far.example,', '\tfred@far.example', 'X: y', '', 'x', '.')
  }
  const [ours, theirs] = intake.taken
  expect(ours?.original).toBe(
    'Subject: x\r\nX: y\r\nMessage-Id: <4dhRlh0000z1@relay.example>\r\n' +
      'Date: Thu, 01 Jan 2026 00:00:00 +0000 (UTC)\r\nFrom: app@us.example\r\n\r\nx\r\n',
  )
  expect(ours?.message.messageId).toBe('<4dhRlh0000z1@relay.example>')
  expect(theirs?.original).toBe('Subject: x\r\nX: y\r\n\r\nx\r\n')
  expect(theirs?.message.messageId).toBeUndefined()
})

test.each([
  ['RCPT TO:<ann@far.example> NOTIFY=NEVER,DELAY', '501 5.5.4 Error: Bad NOTIFY parameter syntax'],
  ['RCPT TO:<ann@far.example> NOTIFY=', '501 5.5.4 Error: Bad NOTIFY parameter syntax'],
  ['RCPT TO:<ann@far.example> NOTIFY=SOMETIMES', '501 5.5.4 Error: Bad NOTIFY parameter syntax'],
  ['RCPT TO:<ann@far.example> NOTIFY=DELAY NOTIFY=DELAY', '501 5.5.4 Error: Bad NOTIFY parameter syntax'],
  ['RCPT TO:<ann@far.example> ORCPT=ann@far.example', '501 5.5.4 Error: Bad ORCPT parameter syntax'],
  ['RCPT TO:<ann@far.example> ORCPT=rfc822;a+0D+0Ab', '501 5.5.4 Error: Bad ORCPT parameter syntax'],
  ['RCPT TO:<ann@far.example> FOO=bar', '555 5.5.4 Unsupported option: FOO=bar'],
])('%s', async (command, answer) => {
  const { connect } = await openSmtpd()
  const client = await connect()
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example>', command)).toBe(answer)
})

test.each([
  ['MAIL FROM:<a@b.example> RET=FULL RET=FULL', '501 5.5.4 Bad RET parameter syntax'],
  ['MAIL FROM:<a@b.example> RET=HALF', '501 5.5.4 Bad RET parameter syntax'],
  ['MAIL FROM:<a@b.example> ENVID=a+0D+0Ab', '501 5.5.4 Bad ENVID parameter syntax'],
  ['MAIL FROM:<a@b.example> ENVID=a+0g', '501 5.5.4 Bad ENVID parameter syntax'],
  ['MAIL FROM:<a@b.example> SIZE=many', '501 5.5.4 Bad message size syntax'],
  ['MAIL FROM:<a@b.example> FOO', '555 5.5.4 Unsupported option: FOO'],
  ['MAIL FROM:<a@b.example> BODY=BINARYMIME', '555 5.5.4 Unsupported option: BODY=BINARYMIME'],
  ['MAIL FROM:<a@b.example> SMTPUTF8=1', '555 5.5.4 Unsupported option: SMTPUTF8=1'],
  ['MAIL FROM:<a@b.example> __proto__=1', '555 5.5.4 Unsupported option: __proto__=1'],
])('%s', async (command, answer) => {
  const { connect } = await openSmtpd()
  const client = await connect()
  expect(await client.say('EHLO x', command)).toBe(answer)
})

test('DSN parameters are queued decoded', async () => {
  const { connect, intake } = await openSmtpd()
  const client = await connect()
  await client.say(
    'EHLO x',
    'MAIL FROM:<a@b.example> RET=HDRS ENVID=QQ+2B314 BODY=8BITMIME SMTPUTF8 SIZE=1',
    'RCPT TO:<ann@far.example> NOTIFY=DELAY,FAILURE ORCPT=rfc822;Ann+2BX@far.example',
    'RCPT TO:<bob@far.example> NOTIFY=NEVER',
    'RCPT TO:<eve@far.example>',
    'DATA',
    '',
    'x',
    '.',
  )
  expect(intake.taken[0]?.message).toMatchObject({ ret: 'hdrs', envid: 'QQ+314', bodyType: '7bit', smtputf8: true })
  expect(intake.taken[0]?.recipients).toEqual([
    { address: 'ann@far.example', notify: ['failure', 'delay'], orcpt: 'rfc822;Ann+X@far.example' },
    { address: 'bob@far.example', notify: 'never' },
    { address: 'eve@far.example' },
  ])
  expect(intake.taken[0]?.text).toContain(' with UTF8SMTP id ')
})
