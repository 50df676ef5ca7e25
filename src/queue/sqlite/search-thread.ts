/** The thread of a search: it finds the pages it is asked for. */
import { workerData } from 'node:worker_threads'
import { answering } from '../../system/asked-thread.ts'
import type { ListPage, QueueFilter } from '../reader.ts'
import { foundBy } from '../search.ts'
import { openQueueReader } from './queue-reader.ts'

export interface SearchPage {
  readonly filter: QueueFilter
  readonly page: ListPage
}

const reader = openQueueReader(workerData as string)

answering(
  ({ filter, page }: SearchPage) => ({ answer: foundBy(reader, filter, page), transfer: [] }),
  () => reader.close(),
)
