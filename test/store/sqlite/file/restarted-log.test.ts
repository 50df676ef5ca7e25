/** A loss of power while the header of the write-ahead log is written anew, after a checkpoint has copied all of the log into the database. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../../../src/store/message-conditions.ts'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../../src/store/sqlite/clients/inline-store.ts'
import { Checkpoints } from '../../../../src/store/sqlite/file/checkpoints.ts'
import { openForWriting } from '../../../../src/store/sqlite/file/database.ts'
import { signOfDamage } from '../../../../src/store/sqlite/file/repair.ts'
import { queue } from '../../../conformance/mail.ts'
import { asAfterACrash, folder } from '../folders.ts'

/** A queue with 13 messages after a crash. The log has the last one, and a header of zeros. */
async function tornHeader({ checkpoint }: { readonly checkpoint: boolean }): Promise<string> {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const other = openForWriting(directory)
  const checkpoints = new Checkpoints(other)
  for (let n = 0; n < 12; n++) await queue(store)
  expect(checkpoints.run()).toBe(true)
  await queue(store)
  if (checkpoint) expect(checkpoints.run()).toBe(true)
  other.close()
  const crashed = asAfterACrash(directory)
  const wal = `${queueFile(crashed)}-wal`
  writeFileSync(wal, readFileSync(wal).fill(0, 0, 32))
  await store.close()
  return crashed
}

test('a torn header of a log that is copied is no damage: all mail is in the queue, and none is on hold', async () => {
  const crashed = await tornHeader({ checkpoint: true })
  expect(signOfDamage(crashed)).toBeNull()
  const { store, reader } = await openInlineStore({ directory: crashed })
  expect(await reader.list({ ...ANY_MESSAGE, queue: 'incoming' }, { after: 0, limit: 100 })).toHaveLength(13)
  await store.close()
})

test('a damaged header of a log that is not copied is damage', async () => {
  expect(signOfDamage(await tornHeader({ checkpoint: false }))).toBe('commits in the write-ahead log follow a damaged frame')
})
