/** Operations of the page on mail that has left: returned mail is sent again, and addresses are erased, by a plan and its start. */
import { expect, test } from 'vitest'
import { queueAccess } from '../../src/cli/queue-client/queue-access.ts'
import { Operator } from '../support/operator.ts'
import { wholeWords } from '../support/page-client.ts'
import { BOTH_KEYS } from '../support/dkim/dkim-keys.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests, wordsIn } from '../support/page-requests.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'

test('a returned message is sent again by the plan that its screen leads to, and then nothing is left', async () => {
  const far = new RemoteLedger()
  const port = await far.listen()
  far.hasRule = true
  const daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${port}`, returned_content_retention: '7d' })
  try {
    const { ask, textOf, post } = pageRequests(() => daemon, 'admin')
    await daemon.send([{ from: 'app@shop.example', to: 'ruled-1@far.example' }])
    const history = 'history?recipient=ruled-1%40far.example'
    await expect.poll(() => textOf(history), { timeout: 20_000 }).toMatch(/messages\/\w+/)
    const id = /href="\.\/messages\/(\w+)"/.exec(await textOf(history))?.[1] ?? ''
    expect(await textOf(`messages/${id}`, 'viewer')).not.toContain('Send again')
    expect(await textOf(`messages/${id}`)).toContain(`history/resend?id=${id}`)
    expect(await textOf(history)).toContain('Send the failed ones again')
    expect(wordsIn(await textOf(`messages/${id}/content`))).toMatch(
      /Content kept.* It is stored until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, so that it can be sent again/,
    )
    expect((await ask(`history/resend?id=${id}`, 'viewer')).status).toBe(403)
    expect(await textOf(history.replace('?', '/resend?'))).toContain('Send 1 message again?')
    const plan = await textOf(`history/resend?id=${id}&back=messages/${id}`)
    expect(plan).toContain('ruled-1@far.example')
    const form: Record<string, string> = { reason: 'repaired' }
    for (const [, name = '', value = ''] of plan.matchAll(/name="(id|key|back)" value="([^"]*)"/g)) form[name] = value
    far.hasRule = false
    const begun = await post('history/resend', form)
    expect([begun.status, begun.headers.get('location')]).toEqual([303, `../operations/1?back=messages%2F${id}`])
    // The same form has its effect once.
    expect((await post('history/resend', form)).headers.get('location')).toContain('operations/1')
    await expect.poll(() => far.begun.filter(({ to }) => to.includes('ruled-1@far.example')).length, { timeout: 20_000 }).toBe(1)
    expect(await textOf(`history/resend?id=${id}`)).toContain('Send again: no message')
    const again = /sent again, as (\w+)/i.exec(await textOf(`messages/${id}`))?.[1] ?? ''
    expect(await textOf(history)).toMatch(new RegExp(`sent again as <a href="[^"]*messages/${again}">`))
    expect((await ask(`messages/${again}`)).status).toBe(200)
    expect(await textOf('operations/1')).toMatch(/sent again[^]*repaired/)
    expect(await textOf('audit?action=resend')).toContain('operations/1')
  } finally {
    await daemon.close()
    await far.close()
  }
})

test('the addresses of mail that has left are erased by the plan that the history leads to, and then nothing is kept', async () => {
  const far = new RemoteLedger()
  const port = await far.listen()
  far.hasRule = true
  const daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${port}` })
  try {
    const { ask, textOf, post } = pageRequests(() => daemon, 'admin')
    await daemon.send([{ from: 'app@shop.example', to: 'ruled-1@far.example' }])
    const history = 'history?recipient=ruled-1%40far.example'
    await expect.poll(() => textOf(history), { timeout: 20_000 }).toMatch(/messages\/\w+/)
    const id = /href="\.\/messages\/(\w+)"/.exec(await textOf(history))?.[1] ?? ''
    expect(await textOf(`messages/${id}`)).toContain('Send again…')
    const place = 'history/erase?recipient=ruled-1%40far.example&amp;back=history'
    expect(await textOf(history)).toContain(`href="./${place}"`)
    expect(await textOf(history, 'operator')).not.toContain('history/erase')
    expect((await ask(place, 'operator')).status).toBe(403)
    const plan = await textOf(place.replace('&amp;', '&'))
    expect(plan).toMatch(/Erase addresses in \d+ records? for ever\?/)
    expect(plan).toContain('class="danger">Erase</button>')
    expect(wordsIn(plan)).toMatch(/deferd history erase --recipient=ruled-1@far\.example --before=\S+Z/)
    const form: Record<string, string> = { reason: 'asked by Ann' }
    for (const [, name = '', value = ''] of plan.matchAll(/name="(recipient|before|key|back)" value="([^"]*)"/g)) form[name] = value
    const begun = await post('history/erase', form)
    expect([begun.status, begun.headers.get('location')]).toEqual([303, '../operations/1?back=history'])
    // The same form has its effect once.
    expect((await post('history/erase', form)).headers.get('location')).toContain('operations/1')
    expect((await post('history/erase', form, 'operator')).status).toBe(403)
    await expect.poll(() => textOf(place.replace('&amp;', '&')), { timeout: 20_000 }).toContain('Erase addresses: nothing is kept')
    expect(await textOf('operations/1')).toContain('asked by Ann')
    expect(await textOf(`messages/${id}`)).not.toContain('Send again…')
  } finally {
    await daemon.close()
    await far.close()
  }
})

test('the plan names the recipients on the suppression list, and leaves them out', async () => {
  const far = new RemoteLedger()
  const port = await far.listen()
  far.hasRule = true
  const operator = new Operator()
  const dkim = { 'shop.example': { keys: BOTH_KEYS } }
  const daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${port}`, returned_content_retention: '7d', suppression: 'yes', dkim })
  try {
    const cookie = await daemon.cookie('admin')
    const ask = (path: string, accept = 'text/html') => fetch(daemon.url + path, { headers: { accept, cookie } })
    const post = async (path: string, body: object): Promise<unknown> => {
      const headers = { cookie, 'content-type': 'application/json', origin: daemon.url.slice(0, -1) }
      return (await fetch(`${daemon.url}api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    }
    await daemon.send(['ruled-1', 'ruled-2'].map((name) => ({ from: 'app@shop.example', to: `${name}@far.example` })))
    const gone = async (): Promise<readonly { message_size: number }[]> =>
      (
        (await (await ask('api/v1/history?sender=app%40shop.example', 'application/json')).json()) as {
          messages: readonly { message_size: number }[]
        }
      ).messages
    await expect.poll(async () => (await gone()).length, { timeout: 20_000 }).toBe(2)
    // With the signature, which a new message has too.
    const bytes = (await gone())[0]?.message_size
    expect(bytes).toBeGreaterThan(700)
    await post('suppressions', { address: 'ruled-2@far.example', scope: 'shop.example', text: '<script>x</script>' })
    const listed = /^on the suppression list since \d{4}-\d\d-\d\d \(manual, "<script>x<\/script>"\)$/
    expect(await post('history/resend', { filter: { sender: 'app@shop.example' }, dry_run: true })).toMatchObject({
      plan: {
        messages: 1,
        recipients: 1,
        bytes,
        suppressed: {
          left_out: 1,
          sent: 0,
          examples: [{ recipient: 'ruled-2@far.example', scope: 'shop.example', reason: 'manual', text: expect.stringMatching(listed) }],
        },
      },
    })
    const screen = await (await ask('history/resend?sender=app%40shop.example')).text()
    expect(screen).toContain('Send 1 message again?')
    expect(wholeWords(screen)).toMatch(/1 failed recipient, left out[^]*ruled-2@far\.example: on the suppression list since/)
    expect(screen).not.toContain('<script>x')
    const access = queueAccess({ clock: operator.clock, warn: () => undefined })
    const words = ['history', 'resend', '--sender', 'app@shop.example', '--dry-run', '-o', `queue_directory=${daemon.queueDirectory}`]
    expect((await operator.run(words, { access })).out).toMatch(
      /\nleft out, on the suppression list: 1 \(deferd suppression remove ends an entry\)\n {2}ruled-2@far\.example: on the suppression list since .*\n1 message would/,
    )
    expect(await post('history/resend', { filter: { recipient: 'ruled-2@far.example' } })).toMatchObject({
      status: 409,
      detail: 'nothing can be sent again: failed recipients on the suppression list (deferd suppression remove): 1',
    })
  } finally {
    await daemon.close()
    await far.close()
    operator.leave()
  }
})
