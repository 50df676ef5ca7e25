/** The daemon as a process: starts, accepts, is killed, starts again, delivers, and stops. test/process has each of it in full. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { SinkPort } from '../interop/systems.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

test('mail that was acknowledged before a SIGKILL is delivered once after the next start, and SIGTERM ends the daemon', async () => {
  const folder = new DaemonFolder()
  const sink = await new SinkPort({}).open()
  const relayhost = `[127.0.0.1]:${sink.port}`
  try {
    const first = folder.run(['start'])
    await first.prints('deferd listens on')
    const port = Number(/deferd listens on 127\.0\.0\.1:(\d+)/.exec(first.out)?.[1])
    const client = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
    // Nothing listens at the discard port, the relayhost of this start.
    await client.sendMail({ from: 'app@us.example', to: 'ann@far.example', subject: 'smoke', text: 'x' })
    client.close()
    first.child.kill('SIGKILL')
    await first.ended

    const second = folder.run(['start'], { relayhost, minimal_backoff_time: '1s', maximal_backoff_time: '1s' })
    await second.prints('deferd listens on')
    const flushed = folder.run(['queue', 'flush', '--all'])
    expect(await flushed.ended).toMatchObject({ code: 0 })
    await expect.poll(() => sink.received.map(({ recipients }) => recipients)).toEqual([['ann@far.example']])
    second.child.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
    expect(sink.received).toHaveLength(1)
  } finally {
    await folder.close()
    sink.close()
  }
})
