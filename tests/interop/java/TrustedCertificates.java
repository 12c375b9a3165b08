import java.io.FileInputStream;
import java.io.InputStream;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.TreeSet;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Prints what Java trusts of each store, as Kafka's DefaultSslEngineFactory asks: PASSWORD FILE... */
public class TrustedCertificates {
    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            KeyStore store = KeyStore.getInstance(arguments[i].endsWith("jks") ? "JKS" : "PKCS12");
            try (InputStream in = new FileInputStream(arguments[i])) {
                store.load(in, arguments[0].toCharArray());
            }
            TrustManagerFactory factory =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            TreeSet<String> names = new TreeSet<>();
            X509TrustManager manager = (X509TrustManager) factory.getTrustManagers()[0];
            for (X509Certificate each : manager.getAcceptedIssuers()) {
                names.add(each.getSubjectX500Principal().getName());
            }
            System.out.println(String.join(" ", names));
        }
    }
}
