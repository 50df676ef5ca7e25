/** A content with a damaged part: the page, the API and the command name the part, and a transfer does not break off. */
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiConnection, localEndpoint } from '../../src/cli/queue-client/api-connection.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { queueFile } from '../../src/store/folder/queue-folder.ts'
import { queue, T0 } from '../conformance/mail.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests } from '../support/page-requests.ts'

const HEADER = 'Subject: a large report\r\n\r\n'

let daemon: PageDaemon
const ids: { first: string; second: string } = { first: '', second: '' }
const { ask } = pageRequests(() => daemon, 'admin')

beforeAll(async () => {
  daemon = await PageDaemon.start({}, async (folder) => {
    const { store, close } = await openStore(folder, { threads: false, create: true })
    for (const [part, name] of ['first', 'second'].entries()) {
      const id = await queue(store, { content: [Buffer.from(HEADER), Buffer.alloc(200_000, 'x')] })
      const db = new Database(queueFile(folder))
      db.exec(`update chunk set data = zeroblob(length(data)) where id = ${id} * 65536 + ${part}`)
      db.close()
      await store.quarantine(id, `part ${part} of content ${id} is damaged`)
      ids[name as keyof typeof ids] = queueIdOf({ id, createdAt: T0 })
    }
    await close()
  })
})
afterAll(() => daemon.close())

test('the page names the damaged part, for each section', async () => {
  for (const show of ['', '?show=source', '?show=attachments']) {
    const response = await ask(`messages/${ids.first}/content${show}`)
    expect([response.status, await response.text()]).toEqual([
      410,
      expect.stringMatching(new RegExp(`Content damaged[^]*The content of ${ids.first} cannot be read: part 0 of content \\d+ is damaged`)),
    ])
  }
})

test('the API answers with a problem of its own type before the transfer begins', async () => {
  for (const path of [`${ids.first}/content`, `${ids.second}/content`, `${ids.second}/parts`, `${ids.second}/content?part=body`]) {
    const response = await ask(`api/v1/messages/${path}`, 'admin', { headers: { accept: 'application/json' } })
    expect([path, response.status, await response.json()]).toEqual([
      path,
      410,
      expect.objectContaining({ type: '/problems/content-damaged', title: 'Content damaged' }),
    ])
  }
  const header = await ask(`api/v1/messages/${ids.second}/content?part=header`)
  expect([header.status, await header.text()]).toEqual([200, HEADER])
})

test('a command gets the part and EX_DATAERR', async () => {
  const connection = new ApiConnection(localEndpoint(daemon.queueDirectory))
  await expect(connection.content(`/messages/${ids.second}/content`)).rejects.toMatchObject({
    exitCode: 65,
    message: expect.stringMatching(/part 1 of content \d+ is damaged/) as string,
  })
})
