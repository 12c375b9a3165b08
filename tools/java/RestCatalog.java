import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.FilterHolder;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's REST catalog of its own tests, over an SQLite catalog: RestCatalog FOLDER TOKEN SECRET [NAME=VALUE...].
 *
 * Names and values are properties of the catalog, such as its warehouse, by default the folder. Prints its port.
 * Requests need the bearer token, or 401. POST /tokens gives the token that is valid to the client "kwire" with the
 * secret, as an OAuth2 server does.
 * PUT /lose: the next commit succeeds, and its response is 504. PUT /die: as /lose, and nothing else is answered after
 * it. PUT /expire: the token is not accepted any more, and a new one is given to clients.
 */
public class RestCatalog {
    public static void main(String[] args) throws Exception {
        Map<String, String> properties = new HashMap<>(Map.of(
                "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri", "jdbc:sqlite:" + args[0] + "/rest.db",
                "warehouse", "file://" + args[0],
                "jdbc.schema-version", "V1"));
        for (String each : Arrays.copyOfRange(args, 3, args.length)) {
            properties.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
        }
        Catalog catalog = CatalogUtil.buildIcebergCatalog("rest", properties, new Configuration());
        ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
        context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        Guard guard = new Guard(args[1], args[2]);
        context.addFilter(new FilterHolder(guard), "/*", EnumSet.of(DispatcherType.REQUEST));
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(context);
        server.start();
        System.out.println("port " + connector.getLocalPort());
        server.join();
    }

    static final class Guard implements Filter {
        private final AtomicReference<String> fault = new AtomicReference<>("");
        private final String secret;
        private volatile String token;
        private volatile boolean isDead;

        Guard(String token, String secret) {
            this.token = token;
            this.secret = secret;
        }

        @Override
        public void doFilter(ServletRequest given, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            HttpServletRequest request = (HttpServletRequest) given;
            HttpServletResponse answer = (HttpServletResponse) response;
            String path = request.getRequestURI();
            String found = isCommit(request) ? fault.getAndSet("") : "";
            if (request.getMethod().equals("PUT") && path.equals("/expire")) {
                token += "-renewed";
            } else if (request.getMethod().equals("PUT")) {
                fault.set(path);
            } else if (isDead) {
                fail(answer, 503, "ServiceUnavailableException", "the catalog is down");
            } else if (path.equals("/tokens")) {
                giveToken(request, answer);
            } else if (!("Bearer " + token).equals(request.getHeader("Authorization"))) {
                fail(answer, 401, "NotAuthorizedException", "the access token is expired or invalid");
            } else if (!found.isEmpty()) {
                chain.doFilter(request, new Silent(answer));
                isDead = found.equals("/die");
                fail(answer, 504, "GatewayTimeout", "no response of the catalog in time");
            } else {
                chain.doFilter(request, response);
            }
        }

        private void giveToken(HttpServletRequest request, HttpServletResponse answer) throws IOException {
            boolean isKnown = "client_credentials".equals(request.getParameter("grant_type"))
                    && "kwire".equals(request.getParameter("client_id"))
                    && secret.equals(request.getParameter("client_secret"));
            answer.setStatus(isKnown ? 200 : 401);
            answer.setContentType("application/json");
            answer.getWriter().write(isKnown
                    ? "{\"access_token\": \"%s\", \"token_type\": \"bearer\", \"expires_in\": 3600}".formatted(token)
                    : "{\"error\": \"invalid_client\", \"error_description\": \"unknown client or wrong secret\"}");
        }

        private static boolean isCommit(HttpServletRequest request) {
            return request.getMethod().equals("POST") && request.getRequestURI().matches(".*/tables/[^/]+");
        }

        private static void fail(HttpServletResponse response, int status, String type, String message)
                throws IOException {
            response.setStatus(status);
            response.setContentType("application/json");
            String body = "{\"error\": {\"message\": \"%s\", \"type\": \"%s\", \"code\": %d}}";
            response.getWriter().write(body.formatted(message, type, status));
        }
    }

    /** Accepts a response and sends nothing of it. */
    static final class Silent extends HttpServletResponseWrapper {
        Silent(HttpServletResponse response) {
            super(response);
        }

        @Override
        public void setStatus(int status) {}

        @Override
        public PrintWriter getWriter() {
            return new PrintWriter(PrintWriter.nullWriter());
        }

        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public void write(int value) {}

                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {}
            };
        }
    }
}
