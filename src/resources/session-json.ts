/** The dialogue with a host in JSON. */
import { inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import type { StoredSession } from '../store/records/stored-session.ts'
import type { WallView } from '../system/wall-view.ts'
import { textOrNull, time, type Json } from './members.ts'

export const sessionShape = z
  .object({
    id: z.string(),
    time: time.describe('time when the connection began, in seconds since 1970'),
    destination: z.string(),
    source: textOrNull.describe('local address; null where no connection was made'),
    host: z.string().describe('name, address and port of the host'),
    text: z
      .string()
      .describe(
        'a heading, then lines with the milliseconds since the connection began, C (the relay), S (the host) or * (an event), and a text',
      ),
  })
  .meta({ id: 'Session' })

export type SessionJson = Json<typeof sessionShape>

export const sessionJson = ({ id, at, destination, source, host, bytes }: StoredSession, wall: WallView): SessionJson => ({
  id,
  time: wall.seconds(at),
  destination,
  source,
  host,
  text: inflateRawSync(bytes).toString(),
})
