/** Reads and creates files in a maildrop. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Envelope } from '../../src/mail/envelope.ts'

/** Envelopes of the files in the maildrop of a queue. */
export const maildropEnvelopes = (queueDirectory: string): readonly Envelope[] =>
  readdirSync(join(queueDirectory, 'maildrop')).map((name) => {
    const [envelope = ''] = readFileSync(join(queueDirectory, 'maildrop', name), 'utf8').split('\n', 1)
    return JSON.parse(envelope) as Envelope
  })
