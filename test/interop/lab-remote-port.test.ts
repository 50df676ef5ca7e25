/** Postfix sends to a port of a lab, whose rules change by HTTP while it runs. */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { greeted } from '../../scripts/bench/child.ts'
import { flushPostfix, postfixIsMissing, startPostfix } from '../../scripts/bench/postfix.ts'
import { TestLab } from '../support/lab-client.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonToSkip } from '../support/required.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())
const WAIT = { timeout: 60_000, interval: 100 }

test.skipIf(reason !== null)(
  `Postfix defers while a rule is there, and bounces by the next${reason ?? ''}`,
  { timeout: 180_000 },
  async () => {
    await using lab = await TestLab.open()
    const world = await lab.world({ relay: false, remote_ports: ['mx.far.example'] })
    const listen = await portBelowEphemeral()
    // Not in the folder of the tests, which Postfix's own user may not enter.
    const folder = mkdtempSync('/tmp/deferd-lab-')
    chmodSync(folder, 0o755)
    const postfix = await startPostfix(folder, { listen, nextHop: world.remotePorts[0]?.port ?? 0 })
    try {
      await greeted(postfix, listen, new AbortController().signal)
      const send = (to: string) =>
        createTransport({ host: '127.0.0.1', port: listen, ignoreTLS: true }).sendMail({ from: 'app@us.example', to, text: 'hello' })
      await world.post('/destinations/far.example/greylists', { delay: '5m' })
      await send('ann@far.example')
      await expect.poll(async () => (await world.get('/rules')).rules[0]?.used, WAIT).toBe(1)
      expect((await world.get('/mailboxes/ann@far.example')).mails).toEqual([])
      // A flush passes over mail that is not back in the deferred queue.
      const files = (queue: string) =>
        readdirSync(join(folder, 'spool', queue), { recursive: true, withFileTypes: true }).filter((one) => one.isFile()).length
      await expect.poll(() => [files('active'), files('deferred')], WAIT).toEqual([0, 1])
      await world.post('/clock/advance', { by: '5m' })
      await flushPostfix(folder)
      expect((await world.get('/mailboxes/ann@far.example/wait?within=60s')).subject).toBe('')
      await world.post('/destinations/far.example/recovers')
      await world.post('/destinations/far.example/rejects', { recipient: 'bob@far.example' })
      await send('bob@far.example')
      const notice = await world.get('/mailboxes/app@us.example/wait?within=60s')
      expect(notice.subject).toMatch(/Undelivered/)
    } finally {
      await postfix.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
