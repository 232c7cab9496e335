import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Named } from '../core/schemas.ts'
import { timeZoneMax } from '../core/timestamps.ts'
import {
  dateForms,
  defaultPreferences,
  languages,
  localZone,
  taskViewName,
  themes,
  tracePlace,
} from './preference-choices.ts'

const preferences = {
  theme: Choice(themes, { description: '`system` follows the setting of the operating system.' }),
  time_zone: Type.String({
    minLength: 1,
    maxLength: timeZoneMax,
    description: `Time zone of displayed times: an IANA time zone, such as Europe/Berlin, or \`${localZone}\` for the zone of the browser.`,
  }),
  date_form: Choice(dateForms, { description: 'Format of dates and numbers.' }),
  language: Choice(languages, { description: 'Language of the console.' }),
  trace_url: Type.String({
    maxLength: bounds.trace_url,
    pattern: '^(https?://[^\\s]*\\{trace_id\\}[^\\s]*)?$',
    description: `Page that shows a trace: an http or https URL that contains \`${tracePlace}\`. Empty if there is none.`,
  }),
  task_views: Type.Array(
    Type.Object({
      project_id: Type.String({ minLength: 1, maxLength: 32 }),
      name: Type.String({ minLength: 1, maxLength: taskViewName.max, description: 'Name of the view.' }),
      query: Type.String({
        maxLength: 2000,
        description: 'Filters and order, as the query string of the page.',
      }),
    }),
    {
      maxItems: bounds.task_views,
      description: 'Saved views of the list of tasks, in all projects. A new list replaces the old one.',
    },
  ),
}
const Preferences = Named('Preferences', Type.Object(preferences))

const common = {
  error_format: 'agents',
  tag: 'Users',
  credentials: ['session'],
  // Viewers may change their preferences too.
  scope: null,
  bucket: 'user',
  personal: true,
  extension: true,
  path: '/api/v1/auth/preferences',
  without_command: 'only the console uses preferences, and only a browser session may read and change them',
  problems: [],
} as const

export const getPreferences = defineOperation({
  ...common,
  id: 'getPreferences',
  sdk: 'user.preferences',
  method: 'GET',
  summary: 'Read the preferences of the current user',
  description: "The console's settings for the user, in every browser.",
  responses: [{ status: 200, description: 'The preferences.', schema: Preferences, example: defaultPreferences }],
})

export const updatePreferences = defineOperation({
  ...common,
  id: 'updatePreferences',
  sdk: 'user.updatePreferences',
  unaudited: 'it only changes how the console looks for one user',
  method: 'PUT',
  summary: 'Change the preferences of the current user',
  description: 'Changes the given preferences and keeps the others.',
  body: Type.Partial(Type.Object(preferences)),
  body_example: { theme: 'dark', time_zone: 'UTC' },
  responses: [
    {
      status: 200,
      description: 'The preferences after the change.',
      schema: Preferences,
      example: { ...defaultPreferences, theme: 'dark', time_zone: 'UTC' },
    },
  ],
})

export const preferenceOperations: Operation[] = [getPreferences, updatePreferences] as Operation[]
