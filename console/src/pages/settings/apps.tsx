import { paths } from '../../paths.ts'
import { TabLinks } from '../../ui/tabs.tsx'
import { useSearchText } from '../../search-state.ts'
import { OwnApps } from './own-apps.tsx'
import { SessionList } from './session-list.tsx'

/** OAuth apps: those that the organization has registered, and those that a person let act for them. */
export default function Apps() {
  const [{ tab }] = useSearchText()
  const current = tab === 'granted' ? 'granted' : 'own'
  const tabs = (
    <TabLinks
      label="OAuth apps"
      current={current}
      tabs={[
        { id: 'own', label: 'Registered', link: paths.apps() },
        { id: 'granted', label: 'Allowed by you', link: paths.apps({ tab: 'granted' }) },
      ]}
    />
  )
  return current === 'granted' ? <SessionList kind="apps" tabs={tabs} /> : <OwnApps tabs={tabs} />
}
