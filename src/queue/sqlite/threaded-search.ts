/**
 * A search in a thread of its own, with its own connection. The thread lives as long as the search.
 */
import { AskedThread, threadFile } from '../../system/asked-thread.ts'
import type { FoundMessage, Search } from '../search.ts'
import type { SearchPage } from './search-thread.ts'

export function searchInThread(directory: string): Search {
  const thread = new AskedThread<SearchPage, readonly FoundMessage[]>(threadFile(import.meta.url, 'search-thread'), {
    workerData: directory,
  })
  return { find: (filter, page) => thread.ask({ filter, page }), end: () => thread.end() }
}
