/** A relay inside another program: its callbacks, a reload, and configurations that cannot be used. */
import { once } from 'node:events'
import { createTransport } from 'nodemailer'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigError, startRelay, type EmbeddedRelay, type JsonLogRecord, type PublishedEvent, type RelayOptions } from '../src/index.ts'
import { folder } from './store/sqlite/folders.ts'

const LIMIT = { timeout: 30_000 }

let relay: EmbeddedRelay | undefined

afterEach(async () => {
  await relay?.stop()
  relay = undefined
})

const config = (more: RelayOptions['config'] = {}): RelayOptions['config'] => ({
  queue_directory: folder(),
  smtpd_listen: ['127.0.0.1:0'],
  relayhost: '[127.0.0.1]:1',
  ...more,
})

const start = async (options: RelayOptions): Promise<EmbeddedRelay> => (relay = await startRelay(options))

const send = ({ listeners: [at] }: EmbeddedRelay) =>
  createTransport({ host: at?.address ?? '', port: at?.port ?? 0 }).sendMail({ from: 'a@x.example', to: 'b@y.example', text: 'hi' })

describe('a relay inside another program', () => {
  test('passes the bodies of webhooks to onEvent, without a subscription, and records of the log to onLog', async () => {
    const events: PublishedEvent[] = []
    const records: JsonLogRecord[] = []
    const running = await start({ config: config(), onEvent: (event) => events.push(event), onLog: (record) => records.push(record) })
    await send(running)
    await vi.waitFor(() => expect(events.map(({ type }) => type)).toEqual(['message.accepted', 'recipient.deferred']), LIMIT)
    const [accepted, deferred] = events
    expect(Object.keys(deferred ?? {}).toSorted()).toEqual(['data', 'timestamp', 'type'])
    expect(Math.abs(Date.now() - Date.parse(accepted?.timestamp ?? ''))).toBeLessThan(300_000)
    expect(deferred?.data).toMatchObject({ recipient: 'b@y.example', outcome: 'deferred', stage: 'connect', attempts: 1, final: false })
    const kinds = records.map(({ event }) => event)
    expect(kinds).toEqual(expect.arrayContaining(['connected', 'accepted', 'attempted']))
    expect(records.find(({ event }) => event === 'attempted')).toMatchObject({
      level: 'info',
      recipient: 'b@y.example',
      outcome: 'deferred',
    })
  })

  test('goes on when a callback throws: the error is an uncaught exception of the process', async () => {
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    const thrown = once(process, 'uncaughtException')
    try {
      const seen: string[] = []
      const running = await start({
        config: config(),
        onEvent: ({ type }) => {
          seen.push(type)
          if (type === 'message.accepted') throw new Error('bug of the program')
        },
      })
      await send(running)
      expect(await thrown).toMatchObject([{ message: 'bug of the program' }, 'uncaughtException'])
      await vi.waitFor(() => expect(seen).toEqual(['message.accepted', 'recipient.deferred']), LIMIT)
    } finally {
      for (const listener of listeners) process.on('uncaughtException', listener)
    }
  })

  test('applies a changed configuration, and refuses one with mistakes', async () => {
    const given = config()
    const running = await start({ config: given })
    await running.reload({ ...given, smtpd_banner: '$myhostname ESMTP changed' })
    await expect(running.reload({ ...given, maximal_queue_lifetime: 'never' })).rejects.toThrow(ConfigError)
    expect(running.listeners).toHaveLength(1)
    await send(running)
  })

  test('does not start with a mistake in its configuration, which the error names', async () => {
    await expect(startRelay({ config: config({ maximal_queue_lifetime: 'never' }) })).rejects.toMatchObject({
      exitCode: 78,
      problems: [{ where: 'maximal_queue_lifetime' }],
    })
  })
})
