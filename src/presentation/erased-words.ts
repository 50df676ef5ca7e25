/** Words for the records of which an erasure changes some, by table of the queue; tables of the same records have the same words. */
const WORDS: Readonly<Record<string, string>> = {
  history: 'messages of the history',
  session: 'dialogues with hosts',
  kept_content: 'contents of returned mail',
  event: 'events',
  parked: 'events',
  subscription: 'answers of webhooks',
  audit: 'audit log',
  kept_request: 'answers of the API',
  destination: 'destinations',
  provider_suspension: 'suspended providers',
  suppression: 'suppression list',
  schedule_run: 'planned runs',
  search: 'search index',
  search_0: 'search index',
  search_1: 'search index',
}

/** A table of another version has its name. */
export const erasedWords = (table: string): string => WORDS[table] ?? table
