/** Parameters of the classes of mail. */
import { tables } from '../lookup-tables.ts'
import { option } from '../option.ts'
import * as is from '../values.ts'

/** Parameters that name lookup tables of classes, in the order in which they are searched. */
export const CLASS_MAPS = ['sasl_class_maps', 'sender_class_maps', 'client_class_maps'] as const
export type ClassMapName = (typeof CLASS_MAPS)[number]

export const CLASS_OPTIONS = {
  default_class: option(
    is.text,
    'normal',
    'Class of mail for which nothing else names one, and of mail whose class the configuration no longer has; without [class.NAME] tables there is none.',
  ),
  sasl_class_maps: option(tables, '', 'Lookup tables of classes by the user of AUTH, or token:NAME for a token of the API.'),
  sender_class_maps: option(
    tables,
    '',
    'Lookup tables of classes by the envelope sender: user@domain, @domain, or <> for the null sender; for mail without an entry in sasl_class_maps.',
  ),
  client_class_maps: option(
    tables,
    '',
    'Lookup tables of classes by the address of the client (cidr: for networks), for mail without an entry in the two others.',
  ),
  class_header: option(
    is.text,
    'X-Deferd-Class',
    'Header field that asks for a class and is removed from all mail; without [class.NAME] tables, and when empty, no field does.',
  ),
} as const
