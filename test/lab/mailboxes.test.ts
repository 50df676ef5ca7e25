/** Mail in mailboxes: waiting for it, conditions, and mail of wild form. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { TestLab } from '../support/lab-client.ts'

test('wait answers with mail that is sent later, and tells which condition it had', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const sent = sleep(300).then(() => world.send('ann@x.example', { subject: 'Your code', text: 'It is 4711.' }))
  expect(
    await world.get('/mailboxes/ann@x.example/wait?subject=*code*&contains=is&from=app@*&header.x-mailer=*&within=1s').catch(() => 'none'),
  ).toBe('none')
  expect(await world.get('/mailboxes/ann@x.example/wait?subject=*code*&contains=is&from=app@*&within=30s')).toMatchObject({
    subject: 'Your code',
    code: '4711',
  })
  await sent
  expect((await world.ask('GET', '/mailboxes/ann@x.example/wait?after=1&within=50ms')).status).toBe(409)
  expect((await world.ask('GET', '/mailboxes/ann@x.example/wait?subjet=x')).json.errors[0]?.pointer).toBe('/subjet')
})

test('wait with advance delivers greylisted mail and tells the time that has passed', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.send('ann@slow.example')
  expect(await world.get('/mailboxes/ann@slow.example/wait?advance=2d')).toMatchObject({ passed: 300 })
  expect(await world.get('/clock')).toMatchObject({ elapsed: 300 })
})

test('wait with advance before the application has sent says how to wait for it', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  expect((await world.ask('GET', '/mailboxes/ann@x.example/wait?advance=1h')).json.detail).toBe(
    'ann@x.example has 0 mails after 3600s of the world; no message was accepted before the clock advanced: settle with {"after": {"accepted": 1}} waits for the first',
  )
})

test('wait in vain names the deferred mail, other subjects and the nearest address', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.send('ann@slow.example')
  await world.send('anna@x.example', { subject: 'Welcome' })
  const refused = await world.ask('GET', '/mailboxes/ann@slow.example/wait?within=50ms')
  expect(refused.json.detail).toBe(
    'ann@slow.example has 0 mails after 0.05s (1 message is deferred for it: 451 4.7.1 Greylisted, please try again later; advance the clock); anna@x.example has 1',
  )
  expect((await world.ask('GET', '/mailboxes/ann@x.example/wait?within=0')).json.detail).toBe(
    'ann@x.example has 0 mails after 0s; anna@x.example has 1',
  )
  expect((await world.ask('GET', '/mailboxes/anna@x.example/wait?subject=code&within=0')).json.detail).toBe(
    'anna@x.example has 1 mail that does not match ("Welcome") after 0s',
  )
})

test('no mail is listed without its content', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const text = 'x'.repeat(200_000)
  const state = { isSent: false }
  const sending = (async () => {
    for (let n = 0; n < 5; n++) await world.send('ann@x.example', { subject: `mail ${n}`, text })
    state.isSent = true
  })()
  while (!state.isSent) {
    for (const { id } of (await world.get('/mailboxes/ann@x.example')).mails) {
      const { text: raw } = await world.ask('GET', `/mails/${id}/raw`)
      expect(raw.length).toBeGreaterThan(text.length)
    }
  }
  await sending
  expect((await world.get('/mailboxes')) as unknown).toEqual({ mailboxes: [{ address: 'ann@x.example', mails: 5 }] })
})

test('an attachment is answered with its octets, and a bounce as a parsed notice', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/firm.example/rejects', { recipient: 'bob@firm.example' })
  const raw = [
    'From: app@us.example',
    'Subject: file',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'see file',
    '--b',
    'Content-Type: application/pdf; name=x.pdf',
    'Content-Disposition: attachment; filename=x.pdf',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from('%PDF').toString('base64'),
    '--b--',
    '',
  ].join('\r\n')
  await world.send(['ann@x.example', 'bob@firm.example'], { raw })
  await world.post('/clock/settle', { after: { accepted: 1 } })
  const mail = await world.get('/mailboxes/ann@x.example/wait')
  expect(mail).toMatchObject({ attachments: [{ name: 'x.pdf', type: 'application/pdf', size: 4, part: 2 }] })
  expect((await world.ask('GET', `/mails/${mail.id}/parts/2`)).text).toBe('%PDF')
  expect((await world.ask('GET', `/mails/${mail.id}/parts/9`)).status).toBe(404)
  expect((await world.ask('GET', '/mails/99')).status).toBe(404)
  expect(await world.get('/mailboxes/app@us.example/wait?notice=failed')).toMatchObject({
    notice: { action: 'failed', recipients: [{ recipient: 'bob@firm.example', action: 'failed', status: '5.1.1' }] },
  })
})

test('a message is submitted without SMTP, and a refusal is the reply of the relay', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({
    config: { smtpd_recipient_restrictions: ['check_recipient_access inline:{eve@x.example=REJECT}', 'permit'] },
  })
  const submit = (to: string) =>
    world.ask('POST', `/messages?from=app@us.example&to=${to}`, 'Subject: hi\r\n\r\nhello\r\n', { 'content-type': 'message/rfc822' })
  expect((await submit('ann@x.example')).json).toMatchObject({ accepted: ['ann@x.example'], rejected: [] })
  expect((await submit('eve@x.example')).json).toMatchObject({
    accepted: [],
    rejected: ['eve@x.example'],
    reply: expect.stringMatching(/^5/),
  })
})
