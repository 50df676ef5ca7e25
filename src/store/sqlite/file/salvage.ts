/**
 * Salvage: reads each page of a damaged queue that can be read, and writes its rows into a new queue. The damaged files are not
 * changed.
 */
import { messageOf } from '../../../mail/message.ts'
import { QueueFolderUnusable } from '../../errors.ts'
import { CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { PageFile } from './page-file.ts'
import { RowScan, type LostPage } from './row-scan.ts'
import { removeDatabase, sync } from './database-files.ts'
import { SalvagedQueue } from './salvaged-queue.ts'
import type { SalvageReport } from '../../repair-report.ts'

/** Writes the readable rows of the queue in the file `from` to a new file. Throws QueueFolderUnusable when there are none. */
export function salvage(from: string, to: string): SalvageReport {
  const file = new PageFile(from)
  const queue = new SalvagedQueue(to)
  let report: SalvageReport
  try {
    const scan = new RowScan(file, queue.tables)
    let rows = 0
    for (const row of scan.rows()) {
      queue.add(row)
      rows++
    }
    if (rows === 0) throw new QueueFolderUnusable(`no page of ${from} is a readable page of a queue: restore the queue from a backup`)
    const lost = [...scan.lost.map(lostPage), ...fileDamage(file)]
    report = { ...queue.finish(lost.length > 0), lost }
    queue.close()
  } catch (error) {
    queue.close()
    removeDatabase(to)
    throw error
  } finally {
    file.close()
  }
  sync(to)
  return report
}

function fileDamage(file: PageFile): readonly string[] {
  return [
    ...(file.missing > 0 ? [`the file ends ${file.missing} pages too early`] : []),
    ...(file.log.state === 'sound' ? [] : [`the write-ahead log is ${file.log.state}`]),
    ...(file.log.lostAny ? ['a frame of the write-ahead log: messages from 1 on'] : []),
  ]
}

function lostPage({ page, table, after, through }: LostPage): string {
  return `page ${page} (${table}): ${rangeOf(table, after, through)}`
}

/** The messages that have rows in a part of a table. */
function rangeOf(table: string, after: number, through: number): string {
  const toMessage = TO_MESSAGE[table]
  if (toMessage === undefined) return 'some rows are lost'
  const first = Number.isFinite(after) ? toMessage(after + 1) : 1
  return Number.isFinite(through) ? `messages ${first} to ${toMessage(through)}` : `messages from ${first} on`
}

const TO_MESSAGE: Readonly<Record<string, (key: number) => number>> = {
  message: (key) => key,
  recipient: messageOf,
  chunk: (key) => Math.floor(key / CHUNKS_PER_CONTENT),
}
